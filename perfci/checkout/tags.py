"""The tags of a repository, by the commit that each names."""

from __future__ import annotations

from perfci.checkout.command import git, readable
from perfci.checkout.repository import Repository

_FORMAT = "%(objectname) %(objecttype) %(*objectname) %(*objecttype) %(refname:short)"


def tags(repository: Repository) -> dict[str, tuple[str, ...]]:
    """Return each tagged commit's tags, the oldest first."""
    listed = git(
        repository.root, "for-each-ref", "--sort=creatordate", f"--format={_FORMAT}", "refs/tags"
    )
    found: dict[str, list[str]] = {}
    for line in listed.splitlines():
        # without a commit behind the tag both of its places are empty: two blanks
        sha, kind, peeled, peeled_kind, name = line.split(" ", 4)
        commit = sha if kind == "commit" else peeled if peeled_kind == "commit" else ""
        if commit:
            found.setdefault(commit, []).append(readable(name))
    return {sha: tuple(names) for sha, names in found.items()}
