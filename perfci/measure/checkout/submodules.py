"""The submodules of a tree, checked out from the user's own clone: no server is asked."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfci.errors import UnbuiltCommit
from perfci.measure.checkout.disk import explaining
from perfci.measure.checkout.git import GitResult, Repository, attempt, failure, git, readable

MODE = "160000"
"""git's mode of a submodule in a tree."""
SUBMODULE_COMMIT_MISSING = "submodule-commit-missing"
"""The slug where the user's clone of a submodule lacks the commit that a tree wants."""
_OWN_FOLDER = "perfci-submodules"
"""Holds the submodules' git folders in a worktree's registration, and goes with it."""
_FILE = ".gitmodules"
_OFFLINE = {"GIT_NO_LAZY_FETCH": "1"}


@dataclass(frozen=True, slots=True)
class Submodule:
    """A submodule of a tree, at any depth. ``path`` is relative to the tree's root.

    ``git_dir`` is the git folder in the user's clone that it is checked out from; None where the
    clone has not initialised it. It is ``available`` where that folder has the ``commit``.
    """

    path: str
    commit: str
    git_dir: Path | None
    available: bool


def submodules_of(repository: Repository, tree: str) -> tuple[Submodule, ...]:
    """Return the submodules of git's ``tree``, each before those inside of it.

    Those inside of one that is not available aren't known. OutsideError where git fails.
    """
    folders = dict.fromkeys((repository.git_dir, repository.common_dir))
    return tuple(_submodules(tuple(folders), repository.root, tree))


def _submodules(
    git_dirs: Sequence[Path], checkout: Path, tree: str, prefix: str = ""
) -> Iterator[Submodule]:
    """Yield the submodules of a tree of the repository with these ``git_dirs``."""
    git_dir = git_dirs[0]
    for name, path in _declared(git_dir, tree):
        listed = _listed(git_dir, "-z", tree, "--", path)
        mode, _, commit = listed.partition("\t")[0].split() if listed else ("", "", "")
        if mode != MODE:
            continue
        candidates = [folder / "modules" / name for folder in git_dirs]
        candidates.append(_git_dir_of(checkout / path))
        present = [candidate for candidate in candidates if (candidate / "objects").is_dir()]
        having = next((repository for repository in present if _has(repository, commit)), None)
        source = having or next(iter(present), None)
        yield Submodule(f"{prefix}{path}", commit, source, having is not None)
        if having:
            yield from _submodules((having,), checkout / path, commit, f"{prefix}{path}/")


def _declared(git_dir: Path, tree: str) -> list[tuple[str, str]]:
    """Return the name and the path of each submodule that the tree's ``.gitmodules`` declares."""
    if not _listed(git_dir, tree, "--", _FILE):
        return []
    pattern = r"^submodule\..*\.path$"
    listed = _in(git_dir, "config", "--null", "--blob", f"{tree}:{_FILE}", "--get-regexp", pattern)
    entries = (entry.partition("\n") for entry in listed.output.split("\0") if entry)
    pairs = [
        (key.removeprefix("submodule.").removesuffix(".path"), path) for key, _, path in entries
    ]
    return [(name, path) for name, path in pairs if path and _stays_below(name)]


def _git_dir_of(place: Path) -> Path:
    """Return the git folder of a submodule that is checked out at ``place``, if any is."""
    file = place / ".git"
    if not file.is_file():
        return file  # of a clone that was made there, and then added
    return place / file.read_text("utf-8", "surrogateescape").removeprefix("gitdir:").strip()


def _stays_below(name: str) -> bool:
    """Return whether a name that a commit declares leads out of no folder."""
    return not name.startswith("/") and ".." not in PurePosixPath(name).parts


def _has(git_dir: Path, commit: str) -> bool:
    return _in(git_dir, "cat-file", "-e", f"{commit}^{{tree}}").status == 0


def _listed(git_dir: Path, *arguments: str) -> str:
    outcome = _in(git_dir, "ls-tree", "--full-tree", *arguments)
    if outcome.status != 0:
        raise failure(outcome, "ls-tree")
    return outcome.output


def _in(git_dir: Path, *arguments: str) -> GitResult:
    return attempt(git_dir, f"--git-dir={git_dir}", *arguments, environment=_OFFLINE)


def missing_commit(submodule: Submodule, rev: str) -> UnbuiltCommit:
    """Return the error for a submodule whose commit the user's clone lacks."""
    return UnbuiltCommit(
        SUBMODULE_COMMIT_MISSING,
        f"{rev} has the submodule {readable(submodule.path)} at {submodule.commit[:12]}, a commit "
        "that the clone of it here lacks",
        f"Fetch it: git -C {readable(submodule.path)} fetch origin {submodule.commit} "
        "(actions/checkout: `fetch-depth: 0` with `submodules: recursive`). Or let `build` run "
        "`git submodule update --init --recursive`: perfci then checks no submodule out.",
    )


def check_out_submodules(submodules: Sequence[Submodule], worktree: Path) -> None:
    """Check available ``submodules`` out in ``worktree``, a worktree of perfci's.

    Each borrows the objects of the user's clone. Its git folder lies in the worktree's
    registration, as git itself would have it, so that both go together. OutsideError where git or
    the disk fails.
    """
    if not submodules:
        return
    registration = Path(git(worktree, "rev-parse", "--absolute-git-dir"))
    for number, submodule in enumerate(submodules):
        if submodule.git_dir is not None:
            own = registration / _OWN_FOLDER / str(number)
            _check_out(submodule.git_dir, submodule.commit, worktree / submodule.path, own)


def _check_out(source: Path, commit: str, place: Path, own: Path) -> None:
    own.parent.mkdir(exist_ok=True)
    digits = git(source, f"--git-dir={source}", "rev-parse", "--show-object-format")
    git(
        place.parent,
        *("init", "--quiet", "--template=", f"--object-format={digits}"),
        *("--separate-git-dir", str(own), str(place)),
    )
    objects = git(source, f"--git-dir={source}", "rev-parse", "--git-path", "objects")
    with explaining(f"checking out at {place}"):
        (own / "objects" / "info").mkdir(exist_ok=True)
        (own / "objects" / "info" / "alternates").write_text(f"{(source / objects).resolve()}\n")
        if (source / "shallow").is_file():
            (own / "shallow").write_bytes((source / "shallow").read_bytes())
    _copy_tags(source, place)
    git(place, "update-ref", "--no-deref", "HEAD", commit)
    git(place, "reset", "--hard", "--quiet", environment=_OFFLINE)


def _copy_tags(source: Path, place: Path) -> None:
    """Give a submodule the tags of the user's clone: a build may ask them for its version."""
    form = "--format=create %(refname) %(objectname)"
    tags = git(source, f"--git-dir={source}", "for-each-ref", form, "refs/tags")
    if tags:
        with tempfile.TemporaryFile("w+") as commands:
            commands.write(f"{tags}\n")
            commands.seek(0)
            attempt(place, "update-ref", "--stdin", given=commands)


def checked_out_in(worktree: Path) -> tuple[str, ...]:
    """Return the paths of the submodules that are checked out in a worktree, but for inner ones."""
    if not (worktree / _FILE).is_file():
        return ()
    entries = git(worktree, "ls-files", "--stage", "-z").split("\0")
    paths = (entry.partition("\t")[2] for entry in entries if entry.startswith(f"{MODE} "))
    return tuple(path for path in paths if (worktree / path / ".git").exists())


def changed_in_working_tree(repository: Repository) -> tuple[str, ...]:
    """Return the submodules of the user's working tree with files that differ from their commit."""
    if not (repository.root / _FILE).is_file():
        return ()
    listed = git(repository.root, "status", "--porcelain=v2", "--ignore-submodules=untracked", "-z")
    entries = (entry.split(" ", 8) for entry in listed.split("\0") if entry.startswith("1 "))
    return tuple(fields[8] for fields in entries if fields[2][2:3] == "M")
