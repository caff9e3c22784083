"""``bisect``: searches a range of commits, or the range of a change of the trend.

The state of a search is kept in a file, so that the same command continues it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from perfci.bisect import Bisection
from perfci.bisect.state import SearchState
from perfci.commands.bisect_driver import BisectDriver, BisectOptions, CommitRange
from perfci.commands.compare import now
from perfci.commands.project import Project
from perfci.errors import (
    BudgetTooShort,
    DamagedFile,
    MeasureError,
    NoHistory,
    SearchRunning,
    UsageError,
)
from perfci.files import read_regular, write_file
from perfci.measure.checkout.disk import explaining, take_if_free
from perfci.model.codec import CodecError, decode, encode
from perfci.trend import Change, Trend

NO_TIME = "no time"
"""The reason of a search that was not made because the budget was used up."""
_SHORTEST_ID = 4
"""Least characters of an id's beginning that may stand for the whole id."""


def bisect(project: Project, wanted: str, options: BisectOptions) -> Bisection:
    """Search ``wanted``, continuing where an earlier start ended.

    ``wanted`` is a range ``GOOD..BAD`` or the id of a change of the trend. A change brings its own
    case, metric and commits.
    """
    if ".." in wanted:
        return _search(project, CommitRange(project, wanted, options.python), options)
    if options.selection or options.metric:
        raise UsageError(
            "change-and-case",
            f"{wanted!r} is no range of commits, and a change of the trend names its own case",
            "Write GOOD..BAD with both ends. Of a change, leave out -k and --metric.",
        )
    change = _change_named(project, wanted, options.history)
    return _search(project, *_search_of(project, change, options))


def _search_of(
    project: Project, change: Change, options: BisectOptions
) -> tuple[CommitRange, BisectOptions]:
    """Return the commits to search for the cause of a change, and the options of that search.

    The range is the one that holds the change with 95 % confidence, not the likeliest range. Raises
    UsageError if the history doesn't know both ends, or if both are the same commit.
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
    return (
        CommitRange(project, f"{older}..{newer}", options.python),
        replace(
            options,
            case=change.series.case,
            metric=change.series.metric,
            expected=change.ratio,
        ),
    )


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """A change of the trend, and its search's ``answer`` or the ``reason`` why it has none."""

    change: Change
    answer: Bisection | None = None
    reason: str = ""


def search_new(
    project: Project, environment: str, options: BisectOptions, *, at: str
) -> tuple[ChangeOutcome, ...]:
    """Search for the commits of new changes in this environment, within the budget.

    New changes come first: regressions before improvements, the costliest first. Known changes
    whose search an earlier night began come next. Of an event with several changes, only the worst
    is searched for. ``at`` is the time, ISO 8601 in UTC.
    """
    deadline = project.caller.executor.now() + options.budget_s
    outcomes: list[ChangeOutcome] = []
    for change, new in _candidates(_trend_of_history(project, options.history, at), environment):
        try:
            left_s = deadline - project.caller.executor.now()
            source, narrowed = _search_of(project, change, replace(options, budget_s=left_s))
            if not new and not _is_begun(project, source, narrowed):
                continue
            outcome = ChangeOutcome(change, reason=NO_TIME)
            if left_s > 0.0:
                outcome = ChangeOutcome(change, _search(project, source, narrowed))
        except BudgetTooShort:
            outcome = ChangeOutcome(change, reason=NO_TIME)
        except (MeasureError, UsageError, SearchRunning) as error:
            outcome = ChangeOutcome(change, reason=error.message)
        outcomes.append(outcome)
        if outcome.answer is not None and outcome.answer.ended == "interrupted":
            break
    return tuple(outcomes)


def _candidates(trend: Trend, environment: str) -> Iterator[tuple[Change, bool]]:
    """Yield the worst change of each open event of the code, and whether it is new.

    Ramps are left out. The changes come in the order in which they are searched for.
    """
    worst = [
        event.changes[0]
        for event in trend.events
        if event.kind == "code" and event.environment == environment
    ]
    steps = [
        change for change in worst if change.kind == "step" and change.status in {"new", "known"}
    ]
    steps.sort(key=lambda change: (change.status != "new", not change.worse, -(change.cost or 0.0)))
    yield from ((change, change.status == "new") for change in steps)


def _search(project: Project, source: CommitRange, options: BisectOptions) -> Bisection:
    """Search, continuing where an earlier start ended. MeasureError if nothing moved."""
    started = project.caller.executor.now()
    with _state_file(project, source, options) as path:
        if options.restart:
            with explaining(f"removing {path}"):
                path.unlink(missing_ok=True)
        state = _read_state(path) or SearchState((source.searched,))
        keep = partial(write_state, path)
        return BisectDriver(project, source, options, state, keep, started).run()


@contextmanager
def _state_file(project: Project, source: CommitRange, options: BisectOptions) -> Iterator[Path]:
    """Yield the file of a search's state, and keep other processes from it meanwhile."""
    folder = project.session_context().cache / project.repository.id / "bisect"
    # the configuration, too: another one builds, skips and measures differently
    goal = (options.selection, options.case, options.metric, repr(project.config))
    identity = "\0".join((*source.identity, *goal))
    name = hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()[:16]
    with explaining(f"making {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        lock = take_if_free(folder / f"{name}.lock")
    if lock is None:
        raise SearchRunning(
            "search-running",
            "another perfci searches the same range for the same change",
            "Wait until it has ended.",
        )
    try:
        yield folder / f"{name}.json"
    finally:
        lock.release(remove=True)


def _read_state(path: Path) -> SearchState | None:
    """Return the state of an earlier start, or None. DamagedFile if it can't be read."""
    try:
        return decode(read_regular(path), SearchState)
    except FileNotFoundError:
        return None
    except (CodecError, OSError) as error:
        raise DamagedFile(
            "damaged-search",
            f"the earlier search in {path} can't be read: {error}",
            "Start again with --restart.",
        ) from error


def write_state(path: Path, state: SearchState) -> None:
    """Write the state of a search. OutsideError if the disk is full."""
    with explaining(f"writing {path}"):
        write_file(path, encode(state))


def _is_begun(project: Project, source: CommitRange, options: BisectOptions) -> bool:
    """Return whether an earlier start kept a state of this search."""
    with _state_file(project, source, options) as path:
        return _read_state(path) is not None


def _trend_of_history(project: Project, history: str | None, at: str) -> Trend:
    """Return the analysed history of the project, as ``perfci trend`` would at the time ``at``."""
    from perfci.commands.trend import trend_of
    from perfci.history.store import open_history

    config = project.config
    with open_history(project.history_address(history), create=False) as opened:
        return trend_of(opened, project.repository, config.aliases, config.trend, now=at)


def _change_named(project: Project, given: str, history: str | None) -> Change:
    """Return the change with the id ``given``, or the only one whose id begins with it."""
    try:
        changes = _trend_of_history(project, history, now()).changes
    except NoHistory:
        if history:
            raise
        changes = ()
    matching = [change for change in changes if change.id == given]
    if not matching and len(given) >= _SHORTEST_ID:
        matching = [change for change in changes if change.id.startswith(given)]
    if len(matching) != 1:
        raise UsageError(
            "bad-range",
            f"{given!r} is the beginning of {len(matching)} changes' ids"
            if matching
            else f"{given!r} is no range of commits, and no change of the history has that id",
            "Write GOOD..BAD with both ends, as v1.2..main, or an id of `perfci trend`.",
        )
    return matching[0]
