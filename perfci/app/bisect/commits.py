"""A search over commits: by first parents, and into the branches of merges."""

from __future__ import annotations

from perfci.app.bisect.state import Range
from perfci.app.project import Project
from perfci.bisect.search import Search
from perfci.checkout.commits import commit_of, commits, parents_of
from perfci.checkout.repository import Repository, Resolved
from perfci.errors import UsageError
from perfci.model.bisection import NamedCommit
from perfci.session.workplace import Wanted


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
