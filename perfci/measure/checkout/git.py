"""Running git, and the user's repository: where it is, and what a revision of it means."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from perfci.errors import NoRepository, OutsideError, PerfciError, UsageError
from perfci.measure.checkout.disk import disk_error

_SETTINGS = (
    "core.hooksPath=/dev/null",  # no hook of the user's runs in a checkout of ours
    "core.fsmonitor=false",  # it would start a daemon for every worktree
    "core.splitIndex=false",  # else a copy of the index still writes next to the original
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=0",
    "advice.detachedHead=false",
    "advice.addEmbeddedRepo=false",
    "log.showSignature=false",
)
_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
"""git takes no lock that it can do without, and asks for no password."""
_HOOK_VARIABLES = frozenset(
    f"GIT_{name}"
    for name in (
        *("ALTERNATE_OBJECT_DIRECTORIES", "COMMON_DIR", "DIR", "GRAFT_FILE", "IMPLICIT_WORK_TREE"),
        *("INDEX_FILE", "NAMESPACE", "OBJECT_DIRECTORY", "PREFIX", "SHALLOW_FILE", "WORK_TREE"),
    )
)
"""Variables that perfci's git commands don't get, from ``git rev-parse --local-env-vars``.

A git hook has them set to the user's index, and a check-out by perfci would then write that index.
The variables that carry configuration are passed, because they may hold safe.directory.
"""
_BRANCH = re.compile(r"(?!HEAD$|[0-9a-fA-F]{4,40}$|origin/)\w[\w./-]*")
"""A revision that may be a branch of the remote: not a hash, and without ``~``, ``^`` or ``@``."""
_BUSY = re.compile(
    r"\.lock'?: File exists|could not lock|failed to read .*worktrees/", re.IGNORECASE
)
"""Messages of git that mean that another git is at work in the repository."""
_LACKS_OBJECTS = (
    r"bad object|bad tree|missing (blob|tree|commit)|unable to read|could not (read|get object)"
    r"|corrupt|not a (valid object|tree)|invalid object|failed to unpack tree"
)
_CLONE_AGAIN = "This clone lacks objects, or they are damaged: `git fsck` names them. Clone again."
_INSTALL_FILTER = (
    "Install the filter of .gitattributes, and fetch the files of both commits. For Git LFS: "
    "`git lfs install`, then `git lfs fetch origin BASE HEAD`."
)
_FETCH_ALL = (
    "This is a partial clone, and its remote doesn't deliver the missing objects. When the remote "
    "is reachable: `git fetch --refetch --no-filter` (actions/checkout: no `filter`)."
)
_CAUSES = {
    "partial-clone": ("promisor remote", _FETCH_ALL),
    "filter-failed": (r"(smudge|clean|external) filter|git-lfs", _INSTALL_FILTER),
    "objects-missing": (_LACKS_OBJECTS, _CLONE_AGAIN),
}
"""By an error's slug: git's words on a clone that lacks something, and what to do."""
_WAITS_S = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Waits before a command is tried again, while another git holds a lock."""
_NO_GIT_ADVICE = "Install git and see that it is on PATH."
WORKING_TREE = "."
"""The revision that means the working tree with its uncommitted changes."""
_PLACES = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
_SHORT_SHA = 10
"""Digits of a shortened sha."""
_CHANGE_FOLDER = "Run perfci in a git repository with a working tree: `cd` to it."
_ADDRESS = re.compile(
    r"(?:https?://(?:[^/@\s]*@)?|ssh://(?:[^/@\s]*@)?|git://|[\w.-]+@)"
    r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::\d+(?=/))?[:/]/?"
    r"(?P<path>[\w.~-]+(?:/[\w.~-]+)+)/?",
    re.ASCII,
)
"""A remote's address (HTTP, SSH or git's own protocol) with its ``host`` and ``path``."""


@dataclass(frozen=True, slots=True)
class GitResult:
    """The exit status of a git command, and what it printed. ``output`` lacks its last newline."""

    status: int
    output: str
    error: str


def attempt(
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    given: IO[str] | None = None,
) -> GitResult:
    """Run git in ``folder`` and return how it ended, whatever its exit status.

    ``given`` is its standard input. Waits a little and tries again if another git holds a lock.
    OutsideError if git is missing.
    """
    outcome = _once(folder, arguments, environment or {}, given)
    for wait_s in _WAITS_S:
        if outcome.status == 0 or not _BUSY.search(outcome.error):
            break
        time.sleep(wait_s)
        outcome = _once(folder, arguments, environment or {}, given)
    return outcome


def git(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run git in ``folder`` and return its output. OutsideError if it fails."""
    outcome = attempt(folder, *arguments, environment=environment)
    if outcome.status != 0:
        raise failure(outcome, *arguments)
    return outcome.output


@lru_cache(maxsize=8)
def files_of(git_dir: Path, tree: str) -> Mapping[str, tuple[str, str]]:
    """Return the mode and the id of each file, link and submodule of a git tree, by its path.

    The id of a tree names its content, so the last listings are kept. OutsideError if git fails.
    """
    listed = git(git_dir, *within(git_dir), "ls-tree", "-r", "-z", "--full-tree", tree)
    files = {}
    for entry in filter(None, listed.split("\0")):
        description, _, path = entry.partition("\t")
        mode, _, blob = description.split()
        files[path] = mode, blob
    return MappingProxyType(files)


def within(git_dir: Path) -> tuple[str, str]:
    """Return git's options to read a git folder, though the working tree it names may be gone."""
    return f"--git-dir={git_dir}", f"--work-tree={git_dir}"


def failure(outcome: GitResult, *arguments: str) -> PerfciError:
    """Return the error with git's own message, and with what to do."""
    reason = readable(outcome.error or outcome.output).strip() or f"exit status {outcome.status}"
    doing = f"git {' '.join(arguments[:2])}"
    if _BUSY.search(reason):
        return OutsideError(
            "git-busy",
            f"{doing} found the repository locked: {reason}",
            "Another git is at work, or one was killed: see that none runs, then remove the "
            "lock file it names.",
        )
    matching = (
        (slug, advice)
        for slug, (words, advice) in _CAUSES.items()
        if re.search(words, reason, re.IGNORECASE)
    )
    slug, advice = next(matching, ("git-failed", "Run the same by hand to see more."))
    return disk_error(doing, reason) or OutsideError(slug, f"{doing} failed: {reason}", advice)


def readable(text: str) -> str:
    """Return ``text`` with a question mark for each byte that wasn't UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _once(
    folder: Path,
    arguments: tuple[str, ...],
    environment: Mapping[str, str],
    given: IO[str] | None,
) -> GitResult:
    library = _gitpython()
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    try:
        status, output, error = library.Git(folder).execute(
            [*_without_hook_variables(), "git", *settings, *arguments],
            env={**_ENVIRONMENT, **environment},
            istream=given,
            with_extended_output=True,
            with_exceptions=False,
        )
    except library.GitCommandNotFound as missing:  # raised for a missing folder, too
        reason = f"{folder} is gone" if not folder.is_dir() else "the command git was not found"
        raise OutsideError("no-git", reason, _NO_GIT_ADVICE) from missing
    return GitResult(status, output, error)


def _without_hook_variables() -> list[str]:
    """Return what goes before ``git`` to unset the variables that a git hook has set.

    GitPython can set variables for a command, but can't unset them.
    """
    present = sorted(_HOOK_VARIABLES.intersection(os.environ))
    return ["env", *(f"--unset={name}" for name in present)] if present else []


def _gitpython() -> Any:
    try:
        import git as library  # here, because it takes 90 ms
    except ImportError as error:  # GitPython's way to say, on fourteen lines, that there is no git
        raise OutsideError("no-git", "the command git was not found", _NO_GIT_ADVICE) from error
    return library


_OWN_REPORTS = (b'{\n  "schema": "perfci.report/', b"<!-- perfci -->")
"""The beginnings of the reports that perfci writes as JSON and as Markdown."""


def _untracked(root: Path) -> tuple[list[str], list[str]]:
    """Return the new files that aren't ignored, and those that are perfci's own reports."""
    listed = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    names = [name for name in listed.split("\0") if name]
    reports = []
    for name in names:
        path = root / name
        if path.suffix in {".json", ".md"} and path.is_file():
            with path.open("rb") as file:
                if file.read(40).startswith(_OWN_REPORTS):
                    reports.append(name)
    return [name for name in names if name not in reports], reports


# The working tree as a commit that no ref names, made without touching the user's index.
def snapshot(root: Path, git_dir: Path, head: str) -> tuple[str, str]:
    """Return the tree and the commit of all that ``git add --all`` would take, on top of ``head``.

    Untracked files are in it, but not ignored files and untracked reports of perfci's. The commit
    has head's date, so that the same changes give the same commit. UsageError in a merge with
    conflicts.
    """
    if git(root, "ls-files", "--unmerged"):
        raise UsageError(
            "merge-conflicts",
            f"{root} has unresolved merge conflicts",
            "Resolve them, or name a commit instead of the working tree.",
        )
    with tempfile.TemporaryDirectory(prefix="perfci-") as folder:
        index = Path(folder, "index")
        if (git_dir / "index").exists():
            # With its time: git trusts an entry's stat data only where the entry is older than
            # the index, and a newer copy would hide a change made in the same tick.
            shutil.copy2(git_dir / "index", index)
        environment = {"GIT_INDEX_FILE": str(index)}
        git(root, "add", "--all", environment=environment)
        if reports := _untracked(root)[1]:
            left_out = ("rm", "--cached", "--force", "--quiet", "--", *reports)
            git(root, "--literal-pathspecs", *left_out, environment=environment)
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


@dataclass(frozen=True, slots=True)
class ResolvedRev:
    """A rev and the commit that it means.

    ``commit`` is what to check out, and ``sha`` is what reports show. Both are equal, except for a
    working tree with changes (``dirty``). Then ``commit`` is a commit of the changes that no ref
    names, and ``sha`` is ``<head's sha>+<tree's short sha>``. ``subject`` is the commit's, or
    head's if ``dirty``.
    """

    rev: str
    sha: str
    tree: str
    subject: str
    commit: str

    @property
    def dirty(self) -> bool:
        """Return whether it is a working tree with changes."""
        return self.sha != self.commit

    @property
    def short(self) -> str:
        """The shortened ``sha``."""
        head, plus, tree = self.sha.partition("+")
        return f"{head[:_SHORT_SHA]}{plus}{tree}"


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

    def resolve(self, rev: str) -> ResolvedRev:
        """Return what ``rev`` means; ``.`` is the working tree with its uncommitted changes.

        Raises UsageError if ``rev`` is not a commit, OutsideError if git fails.
        """
        commit, tree, subject = self._commit("HEAD" if rev == WORKING_TREE else rev)
        if rev == WORKING_TREE:
            changed_tree, snapshot_commit = snapshot(self.root, self.git_dir, commit)
            if changed_tree != tree:
                sha = f"{commit}+{changed_tree[:_SHORT_SHA]}"
                return ResolvedRev(rev, sha, changed_tree, subject, snapshot_commit)
        return ResolvedRev(rev, commit, tree, subject, commit)

    def merge_base(self, text: str, other: str) -> str | None:
        """Return the best common ancestor's sha, or None if this clone knows none."""
        commits = [self.resolve(rev).commit for rev in (text, other)]
        outcome = attempt(self.root, "merge-base", *commits)
        if outcome.status not in {0, 1}:
            raise failure(outcome, "merge-base")
        return outcome.output or None

    def changes(self, side: ResolvedRev) -> tuple[str, ...]:
        """Return the files in which ``side``'s commit differs from the one before it, sorted.

        For a working tree with changes, these are the changed files.
        """
        names = git(
            self.root,
            *("diff-tree", "-r", "--name-only", "--no-renames", "-z"),
            *(f"{side.commit}^", side.commit),
        )
        return tuple(readable(name) for name in names.split("\0") if name)

    def is_dirty(self) -> bool:
        """Return whether the working tree has changes or new files, as ``snapshot`` takes them."""
        changed = git(self.root, "status", "--porcelain", "--untracked-files=no")
        return bool(changed or _untracked(self.root)[0])

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

    def _commit(self, rev: str) -> tuple[str, str, str]:
        """Return the commit's sha, its tree's sha and its subject."""
        if not rev or rev.startswith("-") or not rev.isprintable():
            raise UsageError(
                "bad-rev", f"{rev!r} can't be a revision", "Write a branch, a tag or a commit."
            )
        verified = attempt(self.root, "rev-parse", "--verify", "--end-of-options", rev)
        if "is ambiguous" in verified.error:
            raise UsageError(
                "bad-rev",
                f"`{rev}` names more than one thing: {readable(verified.error)}",
                "Write more digits, refs/heads/NAME or refs/tags/NAME.",
            )
        if "\n" in verified.output:
            raise UsageError(
                "bad-rev",
                f"`{rev}` is a range of commits",
                "Name one commit a side. `perfci compare A...B` measures B against its fork point.",
            )
        # In a second step: in `:/text` a `^{commit}` would be part of the text.
        shown = attempt(
            self.root,
            *("show", "--no-patch", "--encoding=UTF-8", "--format=%H%n%T%n%s"),
            f"{verified.output}^{{commit}}",
        )
        if verified.status != 0 or shown.status != 0:
            lacking = failure(shown, "show", rev)
            if verified.status == 0 and lacking.slug != "git-failed":
                raise lacking
            if verified.output not in {"", rev}:  # a hash may be known elsewhere
                git(self.root, "cat-file", "-t", verified.output)
            advice = "See `git branch --all` and `git tag`; fetch it if it is elsewhere."
            if self.is_shallow():
                branch = f" origin {rev}:{rev}" if _BRANCH.fullmatch(rev) else ""
                advice = (
                    f"This is a shallow clone: fetch the rest with `git fetch --unshallow{branch}` "
                    "(actions/checkout: `fetch-depth: 0`)."
                )
            raise UsageError("bad-rev", f"`{rev}` is not a commit of {self.root}", advice)
        commit, tree, subject = readable(f"{shown.output}\n").split("\n", 2)
        return commit, tree, subject.removesuffix("\n")

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

    Raises NoRepository if there is no repository or it has no working tree, OutsideError if git
    is missing or refuses.
    """
    if not path.is_dir():
        raise NoRepository("not-a-repository", f"{path} is not a folder", _CHANGE_FOLDER)
    places = attempt(path, "rev-parse", *_PLACES)
    if "not a git repository" in places.error or "work tree" in places.error:
        raise NoRepository("not-a-repository", f"{path}: {readable(places.error)}", _CHANGE_FOLDER)
    if places.status != 0:
        raise failure(places, "rev-parse")
    return Repository(*(Path(path, folder).resolve() for folder in places.output.splitlines()))


def forge_of(repository: Repository | None) -> str:
    """Return the repository's page on its forge, such as ``https://github.com/octo/models``.

    Secrets in the remote's address (a user, a token) are left out. Empty if there is no page.
    """
    if repository is None:
        return ""
    remote = attempt(repository.root, "config", "--get", "remote.origin.url")
    return web_page(remote.output) if remote.status == 0 else ""


def web_page(remote: str) -> str:
    """Return the web page of a remote's address. Empty for a path or an unknown kind of address."""
    match = _ADDRESS.fullmatch(remote.strip())
    return f"https://{match['host'].lower()}/{match['path'].removesuffix('.git')}" if match else ""
