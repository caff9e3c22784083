"""The order of the runs of one environment: that of their commits, never of a clock alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from perfci.trend.series import Night


@dataclass(frozen=True, slots=True)
class Ordered:
    """``kept`` are indices into the nights given, oldest commit first; ``vanished`` are shas."""

    kept: tuple[int, ...]
    vanished: tuple[str, ...] = ()


def order_nights(nights: Sequence[Night], *, ranks: Mapping[str, int], branch: str = "") -> Ordered:
    """Order the nights by commit, and those of one commit as they were measured.

    ``ranks`` gives each commit of the branch its place, and is empty where no repository could
    be asked; then the recorded positions decide, or where some run has none, the commits'
    dates: a clock that jumps moves no run that has a commit. Where ``branch`` is given, runs
    recorded for another branch are left out.
    """
    if not ranks:
        mine = [i for i, night in enumerate(nights) if _belongs(night, branch)]
        return Ordered(kept=tuple(_by_record(nights, mine)))
    placed = [i for i, night in enumerate(nights) if night.sha in ranks]
    placed.sort(key=lambda i: (ranks[nights[i].sha], nights[i].measured_at))
    absent = [i for i, night in enumerate(nights) if night.sha not in ranks]
    nameless = [i for i in absent if not nights[i].sha and _belongs(nights[i], branch)]
    vanished = {
        nights[i].sha: None for i in absent if nights[i].sha and _belongs(nights[i], branch)
    }
    return Ordered(kept=tuple(_between(nights, placed, nameless)), vanished=tuple(vanished))


def _belongs(night: Night, branch: str) -> bool:
    return not branch or not night.branch or night.branch == branch


def _by_record(nights: Sequence[Night], mine: list[int]) -> list[int]:
    positions = {i: nights[i].position for i in mine}
    if all(position is not None for position in positions.values()):
        return sorted(mine, key=lambda i: (positions[i] or 0, nights[i].measured_at))
    return sorted(mine, key=lambda i: (_time(nights[i]), nights[i].measured_at))


def _time(night: Night) -> str:
    return night.committed_at or night.measured_at


def _between(nights: Sequence[Night], placed: list[int], nameless: list[int]) -> list[int]:
    """Put the runs without a commit behind the last commit that is older than they are."""
    times = list(accumulate((_time(nights[i]) for i in placed), max))
    keyed = [(float(place), _time(nights[i]), i) for place, i in enumerate(placed)]
    keyed += [(bisect_right(times, _time(nights[i])) - 0.5, _time(nights[i]), i) for i in nameless]
    return [i for *_, i in sorted(keyed)]
