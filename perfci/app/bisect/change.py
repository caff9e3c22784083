"""A change of ``trend`` as something to search for: its case, its metric, and its commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfci.errors import UsageError
from perfci.trend.change import Change, Trend

if TYPE_CHECKING:
    from perfci.app.project import Project

_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Target:
    """One metric of one case, the range that moved it, and its new level ÷ its old one."""

    commits: str
    case: str
    metric: str
    ratio: float | None


def target_of(change: Change) -> Target:
    """Return what to search for. UsageError where no two commits are known between which it lies.

    The range is the one that holds the change with 95 % confidence, not the one that fits best.
    """
    older, newer = change.commits_within
    if not older or not newer or change.same_commit:
        raise UsageError(
            "change-without-commits",
            f"the change {change.id} lies between runs of one commit: no commit made it"
            if change.same_commit
            else f"the change {change.id} lies between runs whose commits are not known",
            "Give a range: perfci bisect GOOD..BAD -k CASE --metric METRIC.",
        )
    return Target(f"{older}..{newer}", change.series.case, change.series.metric, change.ratio)


def change_named(given: str, changes: Sequence[Change]) -> Change:
    """Return the change whose id is, or alone begins with, ``given``. UsageError for another."""
    exact = [one for one in changes if one.id == given]
    begin = [one for one in changes if one.id.startswith(given)] if len(given) >= _SHORTEST else []
    found = exact or begin
    if len(found) != 1:
        raise UsageError(
            "bad-range",
            f"{given!r} is the beginning of {len(found)} changes' ids"
            if found
            else f"{given!r} is no range of commits, and no change of the history has that id",
            "Write GOOD..BAD with both ends, as v1.2..main, or an id of `perfci trend`.",
        )
    return found[0]


def trend_of_history(project: Project, place: str | None, at: str) -> Trend:
    """Return the project's history analysed, as ``perfci trend`` does it at this time."""
    from perfci.app.branch import branch_order
    from perfci.app.trend import trend_of
    from perfci.history.history import open_history

    config = project.config
    with open_history(project.history_place(place), create=False) as history:
        loaded = history.load()
        recorded = {run.header.sha for run in loaded.runs}
        branch = branch_order(project.repository, None, recorded)
        return trend_of(loaded, history, branch, config.aliases, now=at, settings=config.trend)


def change_of_history(project: Project, given: str, place: str | None, at: str) -> Change:
    """Return a change of the project's history, as ``perfci trend`` finds it at this time."""
    try:
        changes = trend_of_history(project, place, at).changes
    except UsageError as error:
        if error.slug != "no-history" or place:
            raise
        changes = ()
    return change_named(given, changes)
