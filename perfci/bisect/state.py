"""The state of a search: ranges of commits, the answers so far, and the result that they give."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from perfci.bisect import Bisection, Culprit, Ended, NamedCommit, SkippedCommit, Unseen
from perfci.bisect.posterior import SessionAnswer
from perfci.bisect.search import (
    LevelChange,
    Question,
    Search,
    changes,
    confirmation,
    next_question,
    unseen,
)
from perfci.model.why import Why


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
class SearchedRange:
    """Commits by first parents, the oldest first, and the progress of the search in them.

    ``good`` is the commit before the first. ``merged_by`` is the merge whose branch the commits
    are, or empty. ``why`` has the reason for each skipped position, by the position as text.
    """

    good: NamedCommit
    commits: tuple[NamedCommit, ...]
    search: Search
    merged_by: str = ""
    why: dict[str, str] = field(default_factory=dict)

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


@dataclass(slots=True)
class SearchState:
    """All that a search knows. ``sought`` is known once the ends were compared.

    ``whys`` explain culprits, by the newest commit of each.
    """

    ranges: tuple[SearchedRange, ...]
    sought: SoughtMetric | None = None
    whys: dict[str, Why] = field(default_factory=dict)

    def next_question(self, searched: SearchedRange) -> Question | None:
        """Return the next question of a range.

        The first question of a merged branch is whether the branch moved at all.
        """
        if not searched.merged_by:
            return next_question(searched.search)
        size = self._size_of_merge(searched.merged_by)
        whole = searched.search.end_to_end_change
        if whole is None:
            end = searched.search.length
            blocked = end in searched.search.skipped
            return None if blocked else Question(end, abs(size) / 2.0)
        return next_question(searched.search) if _holds(whole, size) else None

    def next_confirmation(self, searched: SearchedRange) -> Question | None:
        """Return the next comparison of a found change with the commit before it, or None."""
        return confirmation(searched.search, self.changes(searched))

    def changes(self, searched: SearchedRange) -> tuple[LevelChange, ...]:
        """Return a range's changes, or nothing for a branch that didn't move as its merge did."""
        whole = searched.search.end_to_end_change
        merge = searched.merged_by
        if not whole or (merge and not _holds(whole, self._size_of_merge(merge))):
            return ()
        return changes(searched.search)

    def result(self, sought: SoughtMetric, ended: Ended) -> Bisection:
        """Return the answer so far."""
        whole = self.ranges[0]
        change = whole.search.end_to_end_change or 0.0
        answers = [answer for searched in self.ranges for answer in searched.search.answers]
        return Bisection(
            good=whole.good,
            bad=whole.commits[-1],
            commits=len(whole.commits),
            case=sought.case,
            metric=sought.metric,
            unit=sought.unit,
            ratio=math.exp(change) if sought.scale == "log" else None,
            difference=change if sought.scale == "difference" else None,
            culprits=self._culprits(whole, sought),
            skipped=tuple(
                SkippedCommit(searched.at(position), searched.why[str(position)])
                for searched in self.ranges
                for position in searched.search.skipped
            ),
            comparisons=len(answers),
            rounds=sum(answer.rounds for answer in answers),
            ended=ended,
            unseen=tuple(
                Unseen(whole.at(before), whole.at(after), after - before)
                for before, after in (
                    unseen(whole.search) if whole.search.end_to_end_change else ()
                )
            ),
        )

    def _culprits(self, searched: SearchedRange, sought: SoughtMetric) -> tuple[Culprit, ...]:
        """Return a range's culprits. If one is a merge, return the culprits of its branch instead.

        If the branch didn't move, the merge is the culprit: its two sides together make the change.
        """
        culprits: list[Culprit] = []
        for change in self.changes(searched):
            sha = searched.at(change.last).sha
            merged = (
                self._culprits(branch_range, sought)
                for branch_range in self.ranges
                if branch_range.merged_by == sha
            )
            branch = next(filter(None, merged), ())
            culprits += branch or (self._culprit(searched, change, sought),)
        return tuple(culprits)

    def _culprit(
        self, searched: SearchedRange, change: LevelChange, sought: SoughtMetric
    ) -> Culprit:
        commits = searched.commits[change.first - 1 : change.last]
        log = sought.scale == "log"

        def ratio(size: float | None) -> float | None:
            return math.exp(size) if log and size is not None else None

        def difference(size: float | None) -> float | None:
            return None if log else size

        return Culprit(
            commits=commits,
            before=searched.at(change.first - 1).sha,
            probability=change.probability,
            found=change.found,
            improved=(change.size > 0.0) != (sought.direction == "lower"),
            ratio=ratio(change.size),
            ratio_lo=ratio(change.lo),
            ratio_hi=ratio(change.hi),
            difference=difference(change.size),
            difference_lo=difference(change.lo),
            difference_hi=difference(change.hi),
            merged_by=searched.merged_by,
            why=self.whys.get(commits[-1].sha),
        )

    def _size_of_merge(self, sha: str) -> float:
        """Return the size of the change that the merge ``sha`` made."""
        return next(
            change.size
            for searched in self.ranges
            for change in self.changes(searched)
            if searched.at(change.last).sha == sha
        )


def _holds(branch: float, merge: float) -> bool:
    """Return whether a branch moved as its merge did: in its direction, more than half as far."""
    return branch * merge > 0.0 and abs(branch) > abs(merge) / 2.0
