"""Which commits and cases a history lacks, in what order to measure them, and for how long."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

_MARGIN = 1.2
"""A commit is begun where there is this much more time than the slowest one took."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A commit, and those of its cases that have neither a point nor a recorded failure."""

    sha: str
    cases: tuple[str, ...]


def gaps(
    shas: Sequence[str], cases: Sequence[str], known: Collection[tuple[str, str]]
) -> tuple[Gap, ...]:
    """Return what ``known``, pairs of (sha, case), lacks of ``cases``, in the order of ``shas``."""
    found = (Gap(sha, tuple(case for case in cases if (sha, case) not in known)) for sha in shas)
    return tuple(gap for gap in found if gap.cases)


def last_of_each_day(committed_at: Mapping[str, str]) -> tuple[str, ...]:
    """Return of each UTC day the commit that stands first, where the newest come first.

    Times are ISO 8601 in UTC by commit. A nightly run would have seen these and no others.
    """
    days: dict[str, str] = {}
    for sha, moment in committed_at.items():
        days.setdefault(moment[:10], sha)
    return tuple(days.values())


def slowest_case(took: Sequence[tuple[int, float]]) -> float | None:
    """Return the most s that one case took, of commits with (how many cases, how many s)."""
    return max((seconds / cases for cases, seconds in took if cases), default=None)


def time_for(gap: Gap, left_s: float, case_s: float | None) -> float | None:
    """Return how many s of ``left_s`` the gap may take, None where it would not be done in time.

    ``case_s`` is what a case took at the most until now, None before the first. A commit gets
    twice that or half of what is left, whichever is more: one that hangs leaves time for others,
    and one that is only slow is not cut.
    """
    if left_s <= 0:
        return None
    if case_s is None:
        return left_s
    expected = case_s * len(gap.cases)
    if expected * _MARGIN > left_s:
        return None
    return min(left_s, max(2 * expected, left_s / 2))
