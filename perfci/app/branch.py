"""What git says of a branch, where perfci runs in a repository: its commits and its releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection

    from perfci.checkout.repository import Repository


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch by its ``name``, its commits (the oldest first), its tags, and what was odd.

    ``forge`` is the repository's page on the web, where the commits may be its own.
    """

    name: str = ""
    order: tuple[str, ...] = ()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    forge: str = ""


def repository_at(folder: Path) -> Repository | None:
    """Return the repository around ``folder``; None where there is none."""
    from perfci.checkout.repository import open_repository

    try:
        return open_repository(folder)
    except UsageError as error:
        if error.slug in {"not-a-repository", "bare-repository"}:
            return None
        raise


def branch_order(
    repository: Repository | None, wanted: str | None, recorded: Collection[str]
) -> Branch:
    """Return the branch ``wanted`` (else the default one) as far as git can be believed.

    ``recorded`` are the commits in the history. A shallow clone, or one of another project,
    would make them all vanish: then the recorded order counts, and a note says so.
    """
    if repository is None:
        note = "There is no repository here: runs are in their recorded order, with no release."
        return Branch(name=wanted or "", notes=(note,))
    from perfci.checkout.commits import branch_of, commits, tags
    from perfci.checkout.forge import forge_of
    from perfci.trend.timeline.ordering import whole_commits

    rev = _known(repository, wanted) if wanted else repository.default_base() or "HEAD"
    name = wanted.removeprefix("origin/") if wanted else branch_of(repository, rev)
    if repository.is_shallow():
        note = (
            "This is a shallow clone: runs are in their recorded order, and no release is shown "
            "(`git fetch --unshallow`; actions/checkout: `fetch-depth: 0`)."
        )
        return Branch(name=name, notes=(note,), forge=forge_of(repository))
    order = tuple(commit.sha for commit in reversed(commits(repository, rev)))
    named = {sha for sha in recorded if sha}
    if named and named.isdisjoint(order) and not whole_commits(named, order):
        note = (
            f"None of the recorded commits is on {name} of this repository: runs are in their "
            "recorded order."
        )
        return Branch(name=wanted or "", notes=(note,))
    return Branch(name, order, tags(repository), forge=forge_of(repository))


def _known(repository: Repository, wanted: str) -> str:
    """Return ``wanted``, or its remote's where this clone has no branch of that name (as in CI)."""
    from perfci.checkout.command import attempt

    remote = f"origin/{wanted}"
    for rev in (wanted, remote):
        if (
            not rev.startswith("-")
            and attempt(
                repository.root, "rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}"
            ).status
            == 0
        ):
            return rev
    return repository.resolve(wanted).commit  # which says what is wrong with it
