"""``bisect``: searches a range of commits, or the range of a change of the trend.

The state of a search is kept in a file, so that the same command continues it.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path

from perfci.bisect import Bisection, NamedCommit
from perfci.bisect.search import Search, SearchState
from perfci.commands.bisect_driver import BisectDriver, BisectOptions
from perfci.commands.compare import now
from perfci.commands.project import Project
from perfci.errors import (
    DamagedFile,
    NoHistory,
    SearchRunning,
    UsageError,
)
from perfci.files import read_regular, write_file
from perfci.measure.checkout.commits import commit_of, commits, parents_of
from perfci.measure.checkout.disk import explaining, take_if_free
from perfci.measure.checkout.git import Repository
from perfci.model.codec import CodecError, decode, encode
from perfci.trend import Change, Trend

_SHORTEST_ID = 4
"""Least characters of an id's beginning that may stand for the whole id."""


def bisect(project: Project, wanted: str, options: BisectOptions) -> Bisection:
    """Search ``wanted``, continuing where an earlier start ended.

    ``wanted`` is a range ``GOOD..BAD`` or the id of a change of the trend. A change brings its own
    case, metric and commits.
    """
    if ".." in wanted:
        return _search(project, commits_of(project.repository, wanted), options)
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
) -> tuple[SearchState, BisectOptions]:
    """Return the commits to search for the cause of a change, and the options of that search.

    The range is the one that holds the change with 95 % confidence, not the likeliest range. Raises
    UsageError if the history doesn't know both ends, or if both are the same commit.
    """
    older, newer = change.commits_within
    if not older or not newer or change.same_commit:
        raise UsageError(
            "change-without-commits",
            f"the change {change.id} lies between runs of one commit, or of unknown commits",
            "Give a range: perfci bisect GOOD..BAD -k CASE --metric METRIC.",
        )
    series = change.series
    narrowed = replace(options, case=series.case, metric=series.metric, expected=change.ratio)
    return commits_of(project.repository, f"{older}..{newer}"), narrowed


def commits_of(repository: Repository, wanted: str) -> SearchState:
    """Return a search of the first-parent commits of ``OLD..NEW``, before its first answer."""
    newest_first = commits(repository, wanted)
    before = parents_of(repository, newest_first[-1].sha)
    if not before:
        raise UsageError(
            "unrelated-commits",
            f"no commit of {wanted} was made on its older end",
            "Choose an older end that the newer one was made from.",
        )
    good = commit_of(repository, before[0])
    named = tuple(NamedCommit(commit.sha, commit.subject) for commit in reversed(newest_first))
    return SearchState(NamedCommit(good.sha, good.subject), named, Search(len(named)))


def _search(project: Project, state: SearchState, options: BisectOptions) -> Bisection:
    """Search, continuing where an earlier start ended. MeasureError if nothing moved."""
    started = project.caller.executor.now()
    path = _state_path(project, state, options)
    with explaining(f"making {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = take_if_free(path.with_suffix(".lock"))
        if lock is not None and options.restart:
            path.unlink(missing_ok=True)
    if lock is None:
        raise SearchRunning(
            "search-running",
            "another perfci searches the same range for the same change",
            "Wait until it has ended.",
        )
    try:
        state = _read_state(path) or state
        return BisectDriver(project, options, state, partial(write_state, path), started).run()
    finally:
        lock.release(remove=True)


def _state_path(project: Project, state: SearchState, options: BisectOptions) -> Path:
    """Return the file that keeps the state of a search."""
    bad = state.commits[-1].sha
    # the configuration, too: another one builds, skips and measures differently
    goal = (options.selection, options.case, options.metric, repr(project.config))
    parts = (state.good.sha, bad, project.side("head", bad, options.python).python, *goal)
    name = hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]
    return project.session_context().cache / project.repository.id / "bisect" / f"{name}.json"


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


def _trend_of_history(project: Project, history: str | None, at: str) -> Trend:
    """Return the analysed history of the project, as ``perfci trend`` would at the time ``at``."""
    from perfci.commands.trend import trend_of
    from perfci.history.store import open_history

    config = project.config
    with open_history(project.history_address(history), create=False) as opened:
        return trend_of(opened, project.repository, config.aliases, config.trend, now=at)


def _change_named(project: Project, given: str, history: str | None) -> Change:
    """Return the only change whose id is, or begins with, ``given``."""
    try:
        changes = _trend_of_history(project, history, now()).changes
    except NoHistory:
        if history:
            raise
        changes = ()
    matching = [change for change in changes if change.id.startswith(given)]
    if len(matching) != 1 or len(given) < _SHORTEST_ID:
        raise UsageError(
            "bad-range",
            f"{given!r} is no range of commits, and {len(matching)} changes have such an id",
            "Write GOOD..BAD with both ends, as v1.2..main, or an id of `perfci trend`.",
        )
    return matching[0]
