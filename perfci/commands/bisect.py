"""``bisect``: a range of commits or releases, or a change of the trend, and its search.

The state of a search is kept in a file, so that the same command continues it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from perfci.bisect import Bisection, NamedCommit
from perfci.bisect.search import Search
from perfci.bisect.state import SearchedRange, SearchState
from perfci.commands.bisect_driver import BisectOptions, SearchInProgress
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
from perfci.measure.checkout.build import Releases
from perfci.measure.checkout.commits import commit_of, commits, parents_of
from perfci.measure.checkout.disk import explaining, take_if_free
from perfci.measure.checkout.git import Repository, ResolvedRev
from perfci.measure.workplace import RequestedSide
from perfci.model.codec import CodecError, decode, encode
from perfci.trend import Change, Trend

NO_TIME = "no time"
_SHOWN = 8
_SHORTEST = 4


def bisect(project: Project, wanted: str, options: BisectOptions) -> Bisection:
    """Search ``wanted``, continuing where an earlier start ended.

    It is a range ``GOOD..BAD``, or the id of a change of the trend, which has its own case, metric
    and commits.
    """
    if ".." in wanted:
        searched: SearchRange = (
            ReleaseRange(project, options.package, wanted, options.python)
            if options.package
            else CommitRange(project, wanted, options.python)
        )
        return _search(project, searched, options)
    _require_range(wanted, options)
    change = _change_named(project, wanted, options.history)
    return _search(project, *_search_of(project, change, options))


def _require_range(wanted: str, options: BisectOptions) -> None:
    """Raise UsageError for options that don't go with a change of the trend."""
    if options.package:
        raise UsageError(
            "bad-range",
            f"{wanted!r} is no range of releases of {options.package}",
            "Write OLDER..NEWER: perfci bisect --package torch 2.11..2.13.",
        )
    if options.selection or options.metric:
        raise UsageError(
            "change-and-case",
            f"{wanted!r} is a change, which has its own case and metric",
            "Leave out -k and --metric, or give a range GOOD..BAD.",
        )


def _search_of(
    project: Project, change: Change, options: BisectOptions
) -> tuple[SearchRange, BisectOptions]:
    """Return the commits and the options of the search for what made a change.

    UsageError where no two commits are known between which it lies. The range is the one that
    holds the change with 95 % confidence, not the one that fits best.
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
class ChangeSearch:
    """A change of the trend and the answer of its search, or the ``reason`` for none."""

    change: Change
    answer: Bisection | None = None
    reason: str = ""


def search_new(
    project: Project, environment: str, options: BisectOptions, *, now: str
) -> tuple[ChangeSearch, ...]:
    """Search for the commits of new changes in this environment, within the budget.

    The worst come first, then those whose search an earlier night began. Several changes of one
    event are searched for once, as the worst of them. ``now`` is ISO 8601 in UTC.
    """
    end = project.caller.executor.now() + options.budget_s
    searches: list[ChangeSearch] = []
    for change, new in _candidates(_trend_of_history(project, options.history, now), environment):
        try:
            left_s = end - project.caller.executor.now()
            searched, narrowed = _search_of(project, change, replace(options, budget_s=left_s))
            if not new and not _is_begun(project, searched, narrowed):
                continue
            result = ChangeSearch(change, reason=NO_TIME)
            if left_s > 0.0:
                result = ChangeSearch(change, _search(project, searched, narrowed))
        except BudgetTooShort:
            result = ChangeSearch(change, reason=NO_TIME)
        except (MeasureError, UsageError, SearchRunning) as error:
            result = ChangeSearch(change, reason=error.message)
        searches.append(result)
        if result.answer is not None and result.answer.ended == "interrupted":
            break
    return tuple(searches)


def _candidates(trend: Trend, environment: str) -> Iterator[tuple[Change, bool]]:
    """Yield the worst change of each open event of the code, and whether it is new."""
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


def _search(project: Project, search_range: SearchRange, options: BisectOptions) -> Bisection:
    """Search, continuing where an earlier start ended. MeasureError where nothing moved."""
    started = project.caller.executor.now()
    with _state_file(project, search_range, options) as path:
        if options.restart:
            with explaining(f"removing {path}"):
                path.unlink(missing_ok=True)
        state = _read_state(path) or SearchState((search_range.whole,))
        keep = partial(write_state, path)
        return SearchInProgress(project, search_range, options, state, keep, started).run()


@contextmanager
def _state_file(
    project: Project, search_range: SearchRange, options: BisectOptions
) -> Iterator[Path]:
    """Yield the file of a search's state, and hold it meanwhile."""
    folder = project.session_context().cache / project.repository.id / "bisect"
    # another configuration builds, skips and measures differently
    goal = (options.selection, options.case, options.metric, repr(project.config))
    identity = "\0".join((*search_range.identity, *goal))
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
    """Return the state of an earlier start, or None. DamagedFile where it can't be read."""
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
    """Keep the state of a search. OutsideError where the disk is full."""
    with explaining(f"writing {path}"):
        write_file(path, encode(state))


def _is_begun(project: Project, search_range: SearchRange, options: BisectOptions) -> bool:
    """Return whether an earlier start kept a state of this search."""
    with _state_file(project, search_range, options) as path:
        return _read_state(path) is not None


class CommitRange:
    """The commits of ``GOOD..BAD``. All run the newest one's benchmark files."""

    package = ""

    def __init__(self, project: Project, wanted: str, python: str | None) -> None:
        self._project = project
        self._python = python
        self.whole = commits_of(project.repository, wanted)
        self.benchmarks_of: ResolvedRev = project.repository.resolve(self.whole.commits[-1].sha)
        self.identity: tuple[str, ...] = (
            self.whole.good.sha,
            self.whole.commits[-1].sha,
            self.side("head", self.whole.commits[-1]).python,
        )
        asked_for = project.repository.resolve(wanted.rpartition("..")[0])
        if asked_for.commit != self.whole.good.sha:
            project.caller.say(
                f"{asked_for.short} is no first-parent ancestor of the newer end: the search "
                f"begins at {self.whole.good.sha[:10]}, {self.whole.good.subject}",
                err=True,
            )

    def side(self, name: str, commit: NamedCommit) -> RequestedSide:
        """Return a commit as a side to measure."""
        return self._project.side(name, commit.sha, self._python)

    def branches(self, sha: str) -> tuple[SearchedRange, ...]:
        """Return the branches that a commit merged, or nothing for a commit that is no merge."""
        first, *others = parents_of(self._project.repository, sha)
        branches = []
        for other in others:
            try:
                branches.append(commits_of(self._project.repository, f"{first}..{other}", sha))
            except UsageError:  # an unrelated history, whose commits compare with nothing
                continue
        return tuple(branches)


def commits_of(repository: Repository, wanted: str, merged_by: str = "") -> SearchedRange:
    """Return the commits of ``OLD..NEW`` by first parents, and the one before them."""
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
    return SearchedRange(NamedCommit(good.sha, good.subject), named, Search(len(named)), merged_by)


class ReleaseRange:
    """The releases ``GOOD..BAD`` of a package, with one commit of the project."""

    def __init__(self, project: Project, package: str, wanted: str, python: str | None) -> None:
        self.package = package
        context = project.session_context()
        self.benchmarks_of = project.repository.resolve("HEAD")
        self._interpreter = project.side("head", "HEAD", python).python
        # next to the cache, whose content counts as trees of the project
        folder = context.cache.with_name(f"{context.cache.name}-releases")
        self._releases = Releases(package, self._interpreter, folder, context.inherited)
        self.whole = _release_range(package, wanted, self._releases.versions())
        self.identity: tuple[str, ...] = (
            *(package, self.whole.good.sha, self.whole.commits[-1].sha),
            *(self.benchmarks_of.sha, self._interpreter),
        )

    def side(self, name: str, commit: NamedCommit) -> RequestedSide:
        """Return the project with a release as a side to measure. MeasureError without a wheel."""
        return RequestedSide(name, self.benchmarks_of, self._releases.python_of(commit.sha))

    def branches(self, _sha: str, /) -> tuple[SearchedRange, ...]:
        """Return nothing: a release merges none."""
        return ()


SearchRange = CommitRange | ReleaseRange
"""Commits or releases, from good to bad, as a search compares them."""


def _release_range(package: str, wanted: str, versions: tuple[str, ...]) -> SearchedRange:
    ends = [_release_index(package, end, versions) for end in wanted.split("..", 1)]
    if ends[0] >= ends[1]:
        raise UsageError(
            "empty-range",
            f"{wanted} has no release of {package} after the older end",
            "Write the older release first: 2.11..2.13.",
        )
    named = [
        NamedCommit(version, f"{package} {version}") for version in versions[ends[0] : ends[1] + 1]
    ]
    return SearchedRange(named[0], tuple(named[1:]), Search(len(named) - 1))


def _release_index(package: str, given: str, versions: tuple[str, ...]) -> int:
    for index, version in enumerate(versions):
        if given == version or _is_same_release(given, version):
            return index
    newest = ", ".join(reversed(versions[-_SHOWN:]))
    raise UsageError(
        "no-release",
        f"pip finds no release {given!r} of {package!r} for this Python",
        f"The newest are {newest}." if newest else "Check the name, and which index pip asks.",
    )


def _is_same_release(given: str, version: str) -> bool:
    """Return whether 2.11 is 2.11.0 or 2.11.0+cpu."""
    given, version = (name.partition("+")[0] for name in (given, version))
    while given.endswith(".0"):
        given = given[:-2]
    while version.endswith(".0"):
        version = version[:-2]
    return given == version


def _trend_of_history(project: Project, history: str | None, at: str) -> Trend:
    """Return the project's history analysed, as ``perfci trend`` does it at this time."""
    from perfci.commands.trend import trend_of
    from perfci.history.history import open_history

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
    if not matching and len(given) >= _SHORTEST:
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
