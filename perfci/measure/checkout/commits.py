"""The commits of a branch, as its history counts them: along first parents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from perfci.errors import UsageError
from perfci.measure.checkout.git import Repository, attempt, git, readable


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a branch. ``committed_at`` is ISO 8601 in UTC.

    ``position`` counts its first-parent ancestors, None in a shallow clone.
    """

    sha: str
    subject: str
    committed_at: str
    position: int | None


def commits(repository: Repository, wanted: str, *, most: int | None = None) -> tuple[Commit, ...]:
    """Return the commits of ``OLD..NEW`` or of one branch, the newest first, at most ``most``.

    UsageError for a range that is empty or has an end that is not a commit.
    """
    old, separator, new = wanted.rpartition("..")
    newest = repository.resolve(new).commit
    limits = [f"^{repository.resolve(old).commit}"] if separator else []
    limits += [f"--max-count={most}"] if most is not None else []
    result = _listed(repository, newest, *limits)
    if not result:
        raise UsageError(
            "bad-range",
            f"no commits in {wanted}",
            "The older end comes first: main~20..main.",
        )
    return result


def newer_on_base(repository: Repository, base: str, head: str) -> tuple[int, str]:
    """Return how many commits of ``base`` are missing from ``head``, and the last common commit.

    Return 0 and an empty text if they share no history, or if one contains the other.
    """
    parted = attempt(repository.root, "merge-base", base, head)
    if parted.status != 0 or parted.output in {base, head}:
        return 0, ""
    return int(git(repository.root, "rev-list", "--count", f"{head}..{base}")), parted.output


def commit_of(repository: Repository, rev: str) -> Commit:
    """Return the one commit that ``rev`` means. UsageError if it means none."""
    return _listed(repository, repository.resolve(rev).commit, "--max-count=1")[0]


def parents_of(repository: Repository, sha: str) -> tuple[str, ...]:
    """Return the parents of the commit ``sha``: several for a merge, none for a first commit."""
    return tuple(git(repository.root, "show", "--no-patch", "--format=%P", sha).split())


def branch_of(repository: Repository, rev: str) -> str:
    """Return the branch under which runs of ``rev`` are recorded, without ``origin/``.

    If ``rev`` names no branch (CI checks out a commit by itself), it is the default branch.
    """
    repository.resolve(rev)  # raises for a text that git would take for an option
    named = attempt(repository.root, "rev-parse", "--abbrev-ref", rev)
    known = named.output if named.status == 0 and named.output not in {"", "HEAD"} else ""
    return (known or repository.default_base() or "main").removeprefix("origin/")


def first_commit(root: Path) -> str | None:
    """Return the commit that HEAD's history began with, along first parents.

    It identifies a repository: it is equal in all clones, whatever was merged into them. None
    without a repository or a commit, or if this clone lacks the first commit.
    """
    shallow = attempt(root, "rev-parse", "--is-shallow-repository")
    if shallow.status != 0 or shallow.output == "true":
        return None
    first = attempt(root, "rev-list", "--first-parent", "--max-parents=0", "HEAD")
    return first.output if first.status == 0 else None


def _listed(repository: Repository, newest: str, *limits: str) -> tuple[Commit, ...]:
    listed = git(
        repository.root,
        *("log", "-z", "--first-parent", "--encoding=UTF-8", "--format=%H %ct %s"),
        *(newest, *limits, "--"),
    )
    last = None
    if not repository.is_shallow():
        last = int(git(repository.root, "rev-list", "--count", "--first-parent", newest)) - 1
    entries = (entry.split(" ", 2) for entry in listed.split("\0") if entry)
    return tuple(
        Commit(
            sha,
            readable(subject),
            datetime.fromtimestamp(int(seconds), UTC).isoformat(timespec="seconds"),
            None if last is None else last - back,
        )
        for back, (sha, seconds, subject) in enumerate(entries)
    )


# The tags of a repository, by the commit that each names.

_FORMAT = "%(objectname) %(objecttype) %(*objectname) %(*objecttype) %(refname:short)"
"""A tag's object, the object that an annotated tag points to, and the tag's name."""


def tags(repository: Repository) -> dict[str, tuple[str, ...]]:
    """Return each tagged commit's tags, the oldest first."""
    listed = git(
        repository.root, "for-each-ref", "--sort=creatordate", f"--format={_FORMAT}", "refs/tags"
    )
    names_of_commit: dict[str, list[str]] = {}
    for line in listed.splitlines():
        # A tag that isn't annotated points to nothing further: both fields with `*` are empty.
        sha, kind, peeled, peeled_kind, name = line.split(" ", 4)
        commit = sha if kind == "commit" else peeled if peeled_kind == "commit" else ""
        if commit:
            names_of_commit.setdefault(commit, []).append(readable(name))
    return {sha: tuple(names) for sha, names in names_of_commit.items()}


def file_at(repository: Repository, commit: str, file: str) -> str | None:
    """Return the text of ``file`` in ``commit``, or None if the commit lacks the file."""
    result = attempt(repository.root, "show", f"{commit}:{file}")
    return result.output if result.status == 0 else None
