"""The cases of each shard of a report that is measured in parts on several machines. Pure.

Only cases are split, never the two sides of a case. A split depends on nothing but the cases' ids
and which of them are skipped, so that every machine computes the same split by itself.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from perfci.model.case import Case

MOST_SHARDS = 2_000
_WRITTEN = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """One part of ``count``, its ``number`` counted from 1; written ``2/4``."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@dataclass(frozen=True, slots=True)
class ShardCases:
    """The cases that are measured here, and those measured ``elsewhere`` for the same report.

    Without a ``shard`` it has all cases. Parts of one report have the same ``split_digest``.
    ``scale`` is the number of measurable cases of the report ÷ those of this part.
    """

    cases: tuple[Case, ...]
    elsewhere: tuple[Case, ...] = ()
    shard: Shard | None = None
    split_digest: str = ""
    scale: float = 1.0

    @property
    def whole(self) -> tuple[Case, ...]:
        """All cases of the report."""
        return (*self.cases, *self.elsewhere)

    def reports(self, case: str) -> bool:
        """Say whether this part reports ``case``.

        A name that is not a case of head (a file that can't be imported, a removed benchmark) is
        reported by the first shard only, so that a merged report has it once.
        """
        if self.shard is None or self.shard.number == 1:
            return all(other.id != case for other in self.elsewhere)
        return any(known.id == case for known in self.cases)

    def only(self, ids: Collection[str]) -> ShardCases:
        """Return this part with only ``ids`` to measure; what is elsewhere stays elsewhere."""
        return replace(self, cases=tuple(case for case in self.cases if case.id in ids))

    def some(self, ids: Collection[str]) -> ShardCases:
        """Return ``only`` these, in a session of their own for the report of all."""
        chosen = self.only(ids)
        scale = self.scale * whole_by_part(self.cases, chosen.cases)
        return replace(chosen, scale=scale)


def parse_shard(text: str) -> Shard:
    """Return the shard that ``2/4`` names; ValueError for all else."""
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise ValueError("write the second of four as 2/4")
    shard = Shard(*map(int, match.groups()))
    if shard.count > MOST_SHARDS:
        raise ValueError(f"there can be {MOST_SHARDS} shards at most")
    if shard.number > shard.count:
        raise ValueError(f"the last of {shard.count} is {shard.count}/{shard.count}")
    return shard


def split(cases: Sequence[Case], count: int) -> tuple[tuple[Case, ...], ...]:
    """Return the cases of each of ``count`` shards: of those to measure about as many in each."""
    order = sorted(cases, key=lambda case: (bool(case.skip), case.id))
    chosen = {case.id: at % count for at, case in enumerate(order)}
    shares: list[list[Case]] = [[] for _ in range(count)]
    for case in cases:
        shares[chosen[case.id]].append(case)
    return tuple(map(tuple, shares))


def part_of(cases: Sequence[Case], shard: Shard | None) -> ShardCases:
    """Return what ``shard`` has of ``cases``: all of them without a shard."""
    if shard is None:
        return ShardCases(tuple(cases))
    shares = split(cases, shard.count)
    here = shares[shard.number - 1]
    ids = {case.id for case in here}
    return ShardCases(
        cases=here,
        elsewhere=tuple(case for case in cases if case.id not in ids),
        shard=shard,
        split_digest=_digest(shares),
        scale=whole_by_part(cases, here),
    )


def whole_by_part(everything: Sequence[Case], here: Sequence[Case]) -> float:
    """Return the measurable cases of ``everything`` ÷ those ``here``: 4 for a quarter of them."""
    here_count, whole_count = (sum(not case.skip for case in cases) for cases in (here, everything))
    return whole_count / here_count if here_count else 1.0


def scaled_family(comparisons: int, scale: float) -> int:
    """Return how many comparisons the whole report has, ``scale`` times those of this shard."""
    return math.ceil(comparisons * scale - 1e-9)  # 1e-9: rounding of the quotient


def _digest(shares: Sequence[Sequence[Case]]) -> str:
    """Return a digest that only equal splits share."""
    written = json.dumps([sorted(case.id for case in share) for share in shares])
    return hashlib.sha256(written.encode()).hexdigest()[:12]
