"""The user's repository: where it is, and what a rev of it means."""

from __future__ import annotations

import difflib
import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from perfci.checkout.command import Outcome, attempt, check_version, failure, git, readable
from perfci.checkout.disk import explaining
from perfci.errors import OutsideError, PerfciError, UsageError

# The working tree as a commit that no ref names, made without touching the user's index.


def snapshot(root: Path, git_dir: Path, head: str) -> tuple[str, str]:
    """Return the tree and the commit of all that ``git add --all`` would take, on top of ``head``.

    Untracked files are in it, ignored ones are not. The commit carries head's date, so that the
    same changes give the same commit. UsageError in the middle of a merge with conflicts.
    """
    if git(root, "ls-files", "--unmerged"):
        raise UsageError(
            "merge-conflicts",
            f"{root} has unresolved merge conflicts",
            "Resolve them, or name a commit instead of the working tree.",
        )
    with explaining("copying the index"), tempfile.TemporaryDirectory(prefix="perfci-") as folder:
        index = Path(folder, "index")
        if (git_dir / "index").exists():
            # With its time: git trusts an entry's stat data only where the entry is older than
            # the index, and a newer copy would hide a change made in the same tick.
            shutil.copy2(git_dir / "index", index)
        environment = {"GIT_INDEX_FILE": str(index)}
        git(root, "add", "--all", environment=environment)
        tree = git(root, "write-tree", environment=environment)
    date = git(root, "show", "--no-patch", "--format=%ct +0000", head)
    person = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "perfci"), ("EMAIL", "perfci@localhost"), ("DATE", date))
    }
    message = "Working tree, as perfci measured it"
    commit = git(root, "commit-tree", tree, "-p", head, "-m", message, environment=person)
    return tree, commit


WORKING_TREE = "."
_SHORT = 10


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a rev turned out to be.

    ``commit`` is what to check out. ``sha`` is what reports say: the same, or for a working
    tree with changes (``dirty``) ``<head's sha>+<tree's short sha>``, where ``commit`` is a
    commit of those changes that no ref names. ``subject`` is the (head) commit's.
    """

    rev: str
    sha: str
    tree: str
    dirty: bool
    short: str
    subject: str
    commit: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository with a working tree. Made by ``open_repository``."""

    root: Path
    git_dir: Path
    common_dir: Path

    @property
    def id(self) -> str:
        """A short name of this repository on this machine; all its worktrees share it."""
        return hashlib.sha256(str(self.common_dir).encode(errors="surrogateescape")).hexdigest()[
            :12
        ]

    def resolve(self, rev: str) -> Resolved:
        """Return what ``rev`` means; ``.`` is the working tree with its uncommitted changes.

        Raises UsageError for what is no commit, OutsideError where git fails.
        """
        if rev == WORKING_TREE:
            return self._resolve_working_tree()
        commit, tree, subject = self._commit(rev)
        return Resolved(rev, commit, tree, False, commit[:_SHORT], subject, commit)

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the best common ancestor's sha; None where this clone knows none."""
        commits = [self.resolve(rev).commit for rev in (one, other)]
        outcome = attempt(self.root, "merge-base", *commits)
        if outcome.status not in {0, 1}:
            raise failure(outcome, "merge-base")
        return outcome.output or None

    def changes(self, side: Resolved) -> tuple[str, ...]:
        """Return the files in which ``side``'s commit differs from the one before it, sorted.

        Of a working tree with changes these are the changes.
        """
        names = git(
            self.root,
            *("diff-tree", "-r", "--name-only", "--no-renames", "-z"),
            *(f"{side.commit}^", side.commit),
        )
        return tuple(readable(name) for name in names.split("\0") if name)

    def is_dirty(self) -> bool:
        """Return whether the working tree has changes or new files; ignored ones are none."""
        return bool(git(self.root, "status", "--porcelain", "--untracked-files=normal"))

    def default_base(self) -> str | None:
        """Guess what this repository's work is compared with: origin's HEAD, main or master."""
        head = attempt(self.root, "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
        guesses = [head.output] if head.status == 0 else []
        guesses += ["main", "master", "origin/main", "origin/master"]
        known = set(self.names())
        return next((guess for guess in guesses if guess in known), None)

    def is_shallow(self) -> bool:
        """Return whether history was cut off when this was cloned."""
        return git(self.root, "rev-parse", "--is-shallow-repository") == "true"

    def _resolve_working_tree(self) -> Resolved:
        head, head_tree, subject = self._commit("HEAD")
        tree, commit = snapshot(self.root, self.git_dir, head)
        if tree == head_tree:
            return Resolved(WORKING_TREE, head, head_tree, False, head[:_SHORT], subject, head)
        return Resolved(
            rev=WORKING_TREE,
            sha=f"{head}+{tree[:_SHORT]}",
            tree=tree,
            dirty=True,
            short=f"{head[:_SHORT]}+{tree[:_SHORT]}",
            subject=subject,
            commit=commit,
        )

    def _commit(self, rev: str) -> tuple[str, str, str]:
        """Return the commit's sha, its tree's sha and its subject."""
        if not rev or rev.startswith("-") or not rev.isprintable():
            raise UsageError(
                "bad-rev", f"{rev!r} can't be a revision", "Write a branch, a tag or a commit."
            )
        found = self._verified(rev)
        if f"refname '{rev}' is ambiguous" in found.error:
            raise UsageError(
                "ambiguous-rev",
                f"`{rev}` names more than one thing (a branch and a tag?)",
                f"Write refs/heads/{rev} or refs/tags/{rev}.",
            )
        # In a second step: in `:/text` a `^{commit}` would be part of the text.
        commit = self._verified(f"{found.output}^{{commit}}", asked=rev).output
        shown = git(
            self.root,
            *("show", "--no-patch", "--encoding=UTF-8", "--format=%T%n%s", commit),
        )
        tree, _, subject = readable(shown).partition("\n")
        return commit, tree, subject

    def _verified(self, expression: str, asked: str = "") -> Outcome:
        found = attempt(self.root, "rev-parse", "--verify", "--end-of-options", expression)
        if found.status != 0:
            raise self._unknown(asked or expression, found.error)
        return found

    def _unknown(self, rev: str, said: str) -> PerfciError:
        names = self.names()
        if not names and attempt(self.root, "rev-parse", "--verify", "HEAD").status != 0:
            return UsageError(
                "no-commits", f"{self.root} has no commits yet", "Commit something first."
            )
        if "ambiguous" in said:
            return UsageError(
                "ambiguous-rev",
                f"`{rev}` is the beginning of more than one commit",
                "Write more digits.",
            )
        if ".." in rev:
            return UsageError(
                "bad-rev",
                f"`{rev}` is a range, not one commit",
                "Give the two commits one after the other.",
            )
        near = [name for name in names if name.endswith(f"/{rev}")]
        near += difflib.get_close_matches(rev, set(names) - set(near), n=3)
        hints = [f"Did you mean {', '.join(f'`{name}`' for name in near[:3])}?"] if near else []
        if self.is_shallow():
            hints.append(
                "This is a shallow clone: fetch the rest with `git fetch --unshallow` "
                "(actions/checkout: `fetch-depth: 0`)."
            )
        elif not hints:
            hints.append("See `git branch --all` and `git tag`; fetch it if it is elsewhere.")
        return UsageError("unknown-rev", f"`{rev}` is no commit of {self.root}", " ".join(hints))

    def names(self) -> list[str]:
        """Return the short names of branches, remote branches and tags."""
        listed = git(
            self.root,
            *("for-each-ref", "--format=%(refname:short)"),
            *("refs/heads", "refs/remotes", "refs/tags"),
        )
        return listed.splitlines()


def open_repository(path: Path) -> Repository:
    """Return the repository around ``path``.

    Raises UsageError where there is none or it has no working tree, OutsideError where git
    is missing or refuses.
    """
    if not path.is_dir():
        raise UsageError("not-a-repository", f"{path} is no folder", _CHANGE_FOLDER)
    check_version()
    bare = attempt(path, "rev-parse", "--is-bare-repository")
    if bare.status != 0:
        raise _refused(path, bare.error) or failure(bare, "rev-parse")
    if bare.output == "true":
        raise UsageError(
            "bare-repository",
            f"{path} is in a bare repository, which has no working tree",
            "Clone it, and run perfci in the clone.",
        )
    inside = git(path, "rev-parse", "--is-inside-work-tree")
    if inside != "true":
        raise UsageError("not-a-repository", f"{path} is inside a .git folder", _CHANGE_FOLDER)
    root, git_dir, common_dir = (
        Path(git(path, "rev-parse", "--path-format=absolute", option)).resolve()
        for option in ("--show-toplevel", "--git-dir", "--git-common-dir")
    )
    return Repository(root, git_dir, common_dir)


_CHANGE_FOLDER = "Run perfci in a git repository: `cd` to it, or `git init` and commit."


def _refused(path: Path, said: str) -> PerfciError | None:
    if "dubious ownership" in said:
        return OutsideError(
            "unsafe-repository",
            f"git does not trust {path}: it belongs to another user",
            f"If you trust it: git config --global --add safe.directory {path}",
        )
    if "not a git repository" in said:
        return UsageError("not-a-repository", f"{path} is not in a git repository", _CHANGE_FOLDER)
    return None
