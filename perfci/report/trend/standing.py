"""How each series stands today: what of its changes and drifts a reader still has to look at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from perfci.trend.change import Change, Drift, Trend
from perfci.trend.series import SeriesKey

Word = Literal["worse", "drifting", "better", "steady", "too_few"]
WORDS: tuple[Word, ...] = ("steady", "worse", "better", "drifting", "too_few")
"""In data files a standing is its place in this tuple."""


@dataclass(frozen=True, slots=True)
class Standing:
    """``word`` says it; ``change`` or ``drift`` is the one that made it so; ``new`` since last.

    ``too_few``: there are too few nights to tell whether it is steady.
    """

    word: Word
    new: bool
    change: Change | None = None
    drift: Drift | None = None

    @property
    def urgency(self) -> int:
        """Order: what is new and worse, what is still worse, drifts, what is better."""
        place = {"worse": 0, "drifting": 2, "better": 3, "steady": 8, "too_few": 8}[self.word]
        return place + (not self.new)


@dataclass(frozen=True, slots=True)
class Sorted:
    """The changes by what a reader does with them, each the worst first."""

    new_worse: tuple[Change, ...]
    new_better: tuple[Change, ...]
    open_worse: tuple[Change, ...]
    earlier: tuple[Change, ...]
    drifts_worse: tuple[Drift, ...]


def sort_changes(trend: Trend) -> Sorted:
    """Return the changes of ``trend`` in groups; within each they keep their order.

    What a series that is measured no more was left with is not still worse, nor does it drift.
    """
    new = [change for change in trend.changes if change.status == "new"]
    still = [
        change
        for change in trend.changes
        if change.status == "known" and change.worse and change.series not in trend.gone
    ]
    drifts = [drift for drift in trend.drifts if drift.series not in trend.gone]
    seen = {id(change) for change in (*new, *still)}
    return Sorted(
        new_worse=tuple(change for change in new if change.worse),
        new_better=tuple(change for change in new if not change.worse),
        open_worse=tuple(still),
        earlier=tuple(change for change in trend.changes if id(change) not in seen),
        drifts_worse=tuple(drift for drift in drifts if drift.worse),
    )


def standings(trend: Trend) -> dict[SeriesKey, Standing]:
    """Return how each series stands; the steady are left out."""
    found: dict[SeriesKey, Standing] = {}
    for key, standing in _all(trend):
        if key not in found or standing.urgency < found[key].urgency:
            found[key] = standing
    return found


def series_of(changes: Sequence[Change] | Sequence[Drift]) -> int:
    """Return how many series the changes are of."""
    return len({change.series for change in changes})


def _all(trend: Trend) -> Iterable[tuple[SeriesKey, Standing]]:
    groups = sort_changes(trend)
    for change in groups.new_worse:
        yield change.series, Standing("worse", True, change)
    for change in groups.open_worse:
        yield change.series, Standing("worse", False, change)
    for drift in groups.drifts_worse:
        yield drift.series, Standing("drifting", False, drift=drift)
    for change in groups.new_better:
        yield change.series, Standing("better", True, change)
    for key in trend.too_few:
        yield key, Standing("too_few", False)
