"""What a search's state says: its changes, which merges go on into their branch, and the answer."""

from __future__ import annotations

import math
from dataclasses import replace

from perfci.app.bisect.state import Range, Sought, State
from perfci.bisect.search import Change, Question, changes, confirmation, next_question, unseen
from perfci.model.bisection import Bisection, Culprit, Ended, SkippedCommit, Unseen


def next_of(state: State, searched: Range) -> Question | None:
    """Return the next question of a range: of a merged branch, whether it moved at all."""
    if not searched.merged_by:
        return next_question(searched.search)
    size = _size_of_merge(state, searched.merged_by)
    whole = searched.search.whole
    if whole is None:
        end = searched.search.length
        blocked = end in searched.search.skipped
        return None if blocked else Question(end, abs(size) / 2.0)
    return next_question(searched.search) if _holds(whole, size) else None


def next_confirmation(state: State, searched: Range) -> Question | None:
    """Return the next comparison of a found change with the commit before it, or None."""
    return confirmation(searched.search, changes_of(state, searched))


def changes_of(state: State, searched: Range) -> tuple[Change, ...]:
    """Return a range's changes; none of a branch that didn't move as its merge did."""
    whole = searched.search.whole
    if not whole:
        return ()
    if searched.merged_by and not _holds(whole, _size_of_merge(state, searched.merged_by)):
        return ()
    return changes(searched.search)


def result_of(state: State, sought: Sought, ended: Ended, package: str = "") -> Bisection:
    """Return the answer that a state holds; ``package`` where its places are releases of one."""
    whole = state.ranges[0]
    change = whole.search.whole or 0.0
    return Bisection(
        good=whole.good,
        bad=whole.commits[-1],
        commits=len(whole.commits),
        case=sought.case,
        metric=sought.metric,
        unit=sought.unit,
        ratio=math.exp(change) if sought.scale == "log" else None,
        difference=change if sought.scale == "difference" else None,
        culprits=_culprits(state, whole, sought),
        skipped=tuple(
            SkippedCommit(one.at(position), one.why[str(position)])
            for one in state.ranges
            for position in one.search.skipped
        ),
        comparisons=sum(len(one.search.answers) for one in state.ranges),
        rounds=sum(answer.rounds for one in state.ranges for answer in one.search.answers),
        ended=ended,
        package=package,
        unseen=tuple(
            Unseen(whole.at(before), whole.at(after), after - before)
            for before, after in (unseen(whole.search) if whole.search.whole else ())
        ),
    )


def _culprits(state: State, searched: Range, sought: Sought) -> tuple[Culprit, ...]:
    """Return a range's culprits; where a merge is one whose branch moved, too, the branch's.

    Where it didn't, both sides together make the change: the merge itself.
    """
    found: list[Culprit] = []
    for change in changes_of(state, searched):
        sha = searched.at(change.last).sha
        merged = (_culprits(state, one, sought) for one in state.ranges if one.merged_by == sha)
        branch = next(filter(None, merged), ())
        found += branch or (_culprit(searched, change, sought),)
    return tuple(found)


def _size_of_merge(state: State, sha: str) -> float:
    return next(
        change.size
        for one in state.ranges
        for change in changes_of(state, one)
        if one.at(change.last).sha == sha
    )


def _holds(branch: float, merge: float) -> bool:
    """Say whether a branch moved as its merge did: more than half as far, in its direction."""
    return branch * merge > 0.0 and abs(branch) > abs(merge) / 2.0


def _culprit(searched: Range, change: Change, sought: Sought) -> Culprit:
    named = searched.commits[change.first - 1 : change.last]
    log = sought.scale == "log"

    def ratio(size: float | None) -> float | None:
        return math.exp(size) if log and size is not None else None

    def difference(size: float | None) -> float | None:
        return None if log else size

    return Culprit(
        commits=named,
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
    )


def with_whys(found: Bisection, state: State) -> Bisection:
    """Return an answer with what is known of why each culprit is one."""
    culprits = (replace(one, why=state.whys.get(one.commits[-1].sha)) for one in found.culprits)
    return replace(found, culprits=tuple(culprits))
