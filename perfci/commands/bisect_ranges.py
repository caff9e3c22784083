"""The range of a search: the commits between two revisions."""

from __future__ import annotations

from perfci.bisect import NamedCommit
from perfci.bisect.search import Search
from perfci.bisect.state import SearchedRange
from perfci.commands.project import Project
from perfci.errors import UsageError
from perfci.measure.checkout.commits import commit_of, commits, parents_of
from perfci.measure.checkout.git import Repository, ResolvedRev
from perfci.measure.workplace import RequestedSide


class CommitRange:
    """The commits of ``GOOD..BAD``, in ``searched``. ``identity`` tells searches apart.

    All of them run the newest commit's benchmark files, ``benchmarks_of``.
    """

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
