"""The state of a search: its commits, the answers so far, and the result that they give."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from perfci.bisect import Bisection, Culprit, Ended, NamedCommit, SkippedCommit
from perfci.bisect.posterior import SessionAnswer
from perfci.bisect.search import LevelChange, Search, changes


@dataclass(frozen=True, slots=True)
class SoughtMetric:
    """The metric that is searched for. Its changes are logarithms of ratios, or differences."""

    case: str
    metric: str
    unit: str
    direction: str
    scale: Literal["log", "difference"]
    environment: str


@dataclass(slots=True)
class SearchState:
    """All that a search knows.

    The ``commits`` are those of a branch by first parents, the oldest first, and ``good`` is the
    commit before them. ``why`` has the reason for each skipped position, by the position as text.
    ``sought`` is known once the ends were compared.
    """

    good: NamedCommit
    commits: tuple[NamedCommit, ...]
    search: Search
    why: dict[str, str] = field(default_factory=dict)
    sought: SoughtMetric | None = None

    def at(self, position: int) -> NamedCommit:
        """Return the commit at a position of the search."""
        return self.commits[position - 1] if position else self.good

    def add(self, answer: SessionAnswer) -> None:
        """Add the answer of a session."""
        self.search = replace(self.search, answers=(*self.search.answers, answer))

    def skip(self, position: int, why: str) -> None:
        """Leave out a commit that can't be measured."""
        self.search = replace(self.search, skipped=(*self.search.skipped, position))
        self.why[str(position)] = why

    def result(self, sought: SoughtMetric, ended: Ended) -> Bisection:
        """Return the answer so far."""
        change = self.search.end_to_end_change
        found = changes(self.search) if change else ()
        ratio, difference = _in_scale(sought, change or 0.0)
        return Bisection(
            good=self.good,
            bad=self.commits[-1],
            commits=len(self.commits),
            case=sought.case,
            metric=sought.metric,
            unit=sought.unit,
            ratio=ratio,
            difference=difference,
            culprits=tuple(self._culprit(change, sought) for change in found),
            skipped=tuple(
                SkippedCommit(self.at(position), self.why[str(position)])
                for position in self.search.skipped
            ),
            comparisons=len(self.search.answers),
            rounds=sum(answer.rounds for answer in self.search.answers),
            ended=ended,
        )

    def _culprit(self, change: LevelChange, sought: SoughtMetric) -> Culprit:
        ratio, difference = _in_scale(sought, change.size)
        ratio_lo, difference_lo = _in_scale(sought, change.lo)
        ratio_hi, difference_hi = _in_scale(sought, change.hi)
        return Culprit(
            commits=self.commits[change.first - 1 : change.last],
            before=self.at(change.first - 1).sha,
            probability=change.probability,
            found=change.found,
            improved=(change.size > 0.0) != (sought.direction == "lower"),
            ratio=ratio,
            ratio_lo=ratio_lo,
            ratio_hi=ratio_hi,
            difference=difference,
            difference_lo=difference_lo,
            difference_hi=difference_hi,
        )


def _in_scale(sought: SoughtMetric, size: float | None) -> tuple[float | None, float | None]:
    """Return a change's size as a ratio and as a difference, of which one is None."""
    if size is None:
        return None, None
    return (math.exp(size), None) if sought.scale == "log" else (None, size)
