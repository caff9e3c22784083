"""The range of a search: the commits between two revisions, or the releases of a package.

Both classes have the same members. ``searched`` is the range. ``identity`` tells searches apart.
All commits run the benchmark files of ``benchmarks_of``. ``side`` returns a commit as a side to
measure, and ``branches`` the branches that a commit merged.
"""

from __future__ import annotations

from perfci.bisect import NamedCommit
from perfci.bisect.search import Search
from perfci.bisect.state import SearchedRange
from perfci.commands.project import Project
from perfci.errors import UsageError
from perfci.measure.checkout.build import Releases
from perfci.measure.checkout.commits import commit_of, commits, parents_of
from perfci.measure.checkout.git import Repository, ResolvedRev
from perfci.measure.workplace import RequestedSide

_RELEASES_SHOWN = 8
"""Releases that an error message names."""


class CommitRange:
    """The commits of ``GOOD..BAD``. All of them run the newest commit's benchmark files."""

    package = ""

    def __init__(self, project: Project, wanted: str, python: str | None) -> None:
        self._project = project
        self._python = python
        self.searched = commits_of(project.repository, wanted)
        self.benchmarks_of: ResolvedRev = project.repository.resolve(self.searched.commits[-1].sha)
        self.identity: tuple[str, ...] = (
            self.searched.good.sha,
            self.searched.commits[-1].sha,
            self.side("head", self.searched.commits[-1]).python,
        )
        asked_for = project.repository.resolve(wanted.rpartition("..")[0])
        if asked_for.commit != self.searched.good.sha:
            project.caller.say(
                f"{asked_for.short} is no first-parent ancestor of the newer end: the search "
                f"begins at {self.searched.good.sha[:10]}, {self.searched.good.subject}",
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


class ReleaseRange:
    """The releases ``GOOD..BAD`` of a package, all measured with the project's commit HEAD."""

    def __init__(self, project: Project, package: str, wanted: str, python: str | None) -> None:
        self.package = package
        context = project.session_context()
        self.benchmarks_of = project.repository.resolve("HEAD")
        self._interpreter = project.side("head", "HEAD", python).python
        # next to the cache folder, not in it: all that is in it counts as trees of the project
        folder = context.cache.with_name(f"{context.cache.name}-releases")
        self._releases = Releases(package, self._interpreter, folder, context.inherited)
        self.searched = _release_range(package, wanted, self._releases.versions())
        self.identity: tuple[str, ...] = (
            *(package, self.searched.good.sha, self.searched.commits[-1].sha),
            *(self.benchmarks_of.sha, self._interpreter),
        )

    def side(self, name: str, commit: NamedCommit) -> RequestedSide:
        """Return the project with a release as a side to measure. MeasureError without a wheel."""
        return RequestedSide(name, self.benchmarks_of, self._releases.python_of(commit.sha))

    def branches(self, _sha: str, /) -> tuple[SearchedRange, ...]:
        """Return nothing: releases have no merges."""
        return ()


RangeSource = CommitRange | ReleaseRange


def commits_of(repository: Repository, wanted: str, merged_by: str = "") -> SearchedRange:
    """Return the first-parent commits of ``OLD..NEW``, and as ``good`` the commit before them."""
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
    newest = ", ".join(reversed(versions[-_RELEASES_SHOWN:]))
    raise UsageError(
        "no-release",
        f"pip finds no release {given!r} of {package!r} for this Python",
        f"The newest are {newest}." if newest else "Check the name, and which index pip asks.",
    )


def _is_same_release(given: str, version: str) -> bool:
    """Return whether both name one release, as 2.11 names 2.11.0 and 2.11.0+cpu."""
    given, version = (name.partition("+")[0] for name in (given, version))
    while given.endswith(".0"):
        given = given[:-2]
    while version.endswith(".0"):
        version = version[:-2]
    return given == version
