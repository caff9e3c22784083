"""What a search runs over: commits, releases of a package, or a change of the trend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from perfci.bisect.answer import NamedCommit
from perfci.bisect.search import Search
from perfci.commands.bisect.answers import Range
from perfci.commands.project import Project
from perfci.errors import UsageError
from perfci.measure.checkout.commits import commit_of, commits, parents_of
from perfci.measure.checkout.environments import Releases
from perfci.measure.checkout.git import Repository, Resolved
from perfci.measure.workplace import Wanted
from perfci.trend.change import Change, Trend

if TYPE_CHECKING:
    from perfci.commands.project import Project

_SHOWN = 8
_SHORTEST = 4


class Places(Protocol):
    """What a search runs over, from good to bad: commits, or releases of a package.

    ``identity`` names it in the cache folder; ``package`` is empty for commits. ``benchmarks_of``
    is the commit whose benchmark files all run.
    """

    package: str
    whole: Range
    identity: tuple[str, ...]
    benchmarks_of: Resolved

    def side(self, name: str, commit: NamedCommit) -> Wanted:
        """Return a place as a side to measure."""
        ...

    def branches(self, sha: str, /) -> tuple[Range, ...]:
        """Return the branches that a place merged."""
        ...


class Commits:
    """The commits of ``GOOD..BAD``. All run the newest one's benchmark files."""

    package = ""

    def __init__(self, project: Project, wanted: str, python: str | None) -> None:
        self._project = project
        self._python = python
        self.whole = commits_of(project.repository, wanted)
        self.benchmarks_of: Resolved = project.repository.resolve(self.whole.commits[-1].sha)
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

    def side(self, name: str, commit: NamedCommit) -> Wanted:
        """Return a commit as a side to measure."""
        return self._project.side(name, commit.sha, self._python)

    def branches(self, sha: str) -> tuple[Range, ...]:
        """Return the branches that a commit merged; none of one that is no merge."""
        first, *others = parents_of(self._project.repository, sha)
        found = []
        for other in others:
            try:
                found.append(commits_of(self._project.repository, f"{first}..{other}", sha))
            except UsageError:  # a history of its own: nothing to compare its commits with
                continue
        return tuple(found)


def commits_of(repository: Repository, wanted: str, merged_by: str = "") -> Range:
    """Return the commits of ``OLD..NEW`` by first parents, and the one before them."""
    found = commits(repository, wanted)
    before = parents_of(repository, found[-1].sha)
    if not before:
        raise UsageError(
            "unrelated-commits",
            f"no commit of {wanted} was made on its older end",
            "Choose an older end that the newer one was made from.",
        )
    good = commit_of(repository, before[0])
    named = tuple(NamedCommit(one.sha, one.subject) for one in reversed(found))
    return Range(NamedCommit(good.sha, good.subject), named, Search(len(named)), merged_by)


class ReleasesOf:
    """The releases ``GOOD..BAD`` of a package, beneath one commit of the project."""

    def __init__(self, project: Project, package: str, wanted: str, python: str | None) -> None:
        self.package = package
        around = project.surroundings()
        self.benchmarks_of = project.repository.resolve("HEAD")
        self._interpreter = project.side("head", "HEAD", python).python
        # beside the cache: what lies in it is a tree of the project, and its code another side's
        folder = around.cache.with_name(f"{around.cache.name}-releases")
        self._releases = Releases(package, self._interpreter, folder, around.inherited)
        self.whole = _range(package, wanted, self._releases.versions())
        self.identity: tuple[str, ...] = (
            *(package, self.whole.good.sha, self.whole.commits[-1].sha),
            *(self.benchmarks_of.sha, self._interpreter),
        )

    def side(self, name: str, commit: NamedCommit) -> Wanted:
        """Return the project with a release as a side to measure. MeasureError without a wheel."""
        return Wanted(name, self.benchmarks_of, self._releases.python_of(commit.sha))

    def branches(self, _sha: str, /) -> tuple[Range, ...]:
        """Return nothing: a release merges none."""
        return ()


def _range(package: str, wanted: str, versions: tuple[str, ...]) -> Range:
    ends = [_place(package, one, versions) for one in wanted.split("..", 1)]
    if ends[0] >= ends[1]:
        raise UsageError(
            "empty-range",
            f"{wanted} has no release of {package} after the older end",
            "Write the older release first: 2.11..2.13.",
        )
    named = [NamedCommit(one, f"{package} {one}") for one in versions[ends[0] : ends[1] + 1]]
    return Range(named[0], tuple(named[1:]), Search(len(named) - 1))


def _place(package: str, given: str, versions: tuple[str, ...]) -> int:
    for place, version in enumerate(versions):
        if given == version or _same(given, version):
            return place
    newest = ", ".join(reversed(versions[-_SHOWN:]))
    raise UsageError(
        "no-release",
        f"pip finds no release {given!r} of {package!r} for this Python",
        f"The newest are {newest}." if newest else "Check the name, and which index pip asks.",
    )


def _same(given: str, version: str) -> bool:
    """Say whether 2.11 is 2.11.0 or 2.11.0+cpu."""
    given, version = (one.partition("+")[0] for one in (given, version))
    while given.endswith(".0"):
        given = given[:-2]
    while version.endswith(".0"):
        version = version[:-2]
    return given == version


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
    from perfci.commands.project import branch_order
    from perfci.commands.trend import trend_of
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
