"""Makes, inspects and removes perfci's git worktrees, with the submodules of their trees.

Submodules come from the user's own clone, never from a server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from perfci.errors import UnbuiltCommit
from perfci.measure.checkout.disk import remove_folder
from perfci.measure.checkout.git import Repository, attempt, failure, git, readable

PREFIX = "perfci-"
"""Begins the name of each worktree's folder. git gives the registration the folder's name."""
SUBMODULE_MODE = "160000"
"""git's mode of a submodule in a tree."""
SUBMODULE_COMMIT_MISSING = "submodule-commit-missing"
"""The error's slug if the user's clone of a submodule lacks the commit that a tree wants."""
_GITMODULES = ".gitmodules"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_PROBE_BYTES = 1 << 20
"""Size of a file that is written after a failed check-out, to learn why the disk refuses."""
_IMPORTABLE = frozenset({".py", ".so", ".pth"})
_BUILT = (".perfci-build", "build", "__pycache__")
"""Folders whose files come from a build or from Python."""


def add_tree(repository: Repository, path: Path, commit: str, tree: str) -> None:
    """Check ``tree`` out at ``path`` as a worktree of ``commit`` with a detached HEAD.

    The tree is the commit's own, or the same with other benchmark files. OutsideError if that
    fails; ``remove_tree`` then removes what was made.
    """
    # In two steps, so that nothing is locked in the repository while files are written.
    register = ("worktree", "add", "--quiet", "--detach", "--no-checkout", str(path), commit)
    if attempt(repository.root, *register).status != 0:
        # another git may have removed the folder of all registrations, because it was empty
        git(repository.root, *register)
    filling = ("read-tree", "--reset", "-u", tree)
    filled = attempt(path, *filling)
    if filled.status != 0:
        # git names a file that it can't write, but gives no reason: the system's error does
        (path / f"{PREFIX}probe").write_bytes(bytes(_PROBE_BYTES))
        raise failure(filled, *filling)


def lfs_pointers(worktree: Path) -> list[str]:
    """Return the files in the worktree whose content Git LFS has not put in their place."""
    listed = git(worktree, "ls-files", "-z", "--", ":(attr:filter=lfs)")
    pointers = []
    for name in filter(None, listed.split("\0")):
        with suppress(OSError), (worktree / name).open("rb") as file:
            if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
                pointers.append(readable(name))
    return pointers


def remove_tree(repository: Repository, path: Path) -> None:
    """Remove the worktree at ``path``, whole or half made, and its registration.

    git's own commands aren't used: ``git worktree prune`` would also remove the user's worktrees on
    a disk that isn't mounted now, and ``git worktree remove`` doesn't know a worktree whose making
    was cut short. OSError if a folder can't be removed.
    """
    registration = repository.common_dir / "worktrees" / path.name
    # The folder `worktrees` stays, even empty: another git may be about to write into it.
    for folder in (path, registration):
        if folder.exists():
            remove_folder(folder)


def check_out_submodules(repository: Repository, worktree: Path) -> tuple[str, ...]:
    """Check out the submodules of ``worktree``, nested ones too, from the user's clone.

    Return the paths of those that the clone has not initialised. UnbuiltCommit if a commit is
    missing there, OutsideError if git or the disk fails.
    """
    git_dirs = tuple(dict.fromkeys((repository.git_dir, repository.common_dir)))
    return tuple(_check_out(git_dirs, repository.root, worktree))


def _check_out(
    git_dirs: Sequence[Path], checkout: Path, worktree: Path, prefix: str = ""
) -> Iterator[str]:
    """Yield the paths that stay empty. ``git_dirs`` and ``checkout`` are those of the user."""
    for name, path in _declared(worktree):
        places = [*(folder / "modules" / name for folder in git_dirs), checkout / path / ".git"]
        source = next((place for place in places if (place / "objects").is_dir()), None)
        if source is None or ".." in PurePosixPath(name).parts:
            yield f"{prefix}{path}"
            continue
        settings = (f"url={source}", "active=true")
        words = ("submodule", "update", "--quiet", "--checkout", "--", path)
        done = attempt(
            worktree,
            *("-c", "protocol.file.allow=always"),
            *(word for setting in settings for word in ("-c", f"submodule.{name}.{setting}")),
            *words,
        )
        if done.status != 0:
            error = failure(done, *words)
            if error.slug != "git-failed":
                raise error
            raise UnbuiltCommit(
                SUBMODULE_COMMIT_MISSING,
                f"the clone's submodule {readable(prefix + path)} can't be checked out: "
                f"{error.message}",
                f"Fetch it: git -C {readable(prefix + path)} fetch --all (actions/checkout: "
                "`fetch-depth: 0` with `submodules: recursive`). Or let `build` run "
                "`git submodule update --init --recursive`: perfci then checks no submodule out.",
            )
        yield from _check_out((source,), checkout / path, worktree / path, f"{prefix}{path}/")


def _declared(worktree: Path) -> list[tuple[str, str]]:
    """Return the name and the path of each submodule that ``.gitmodules`` declares."""
    if not (worktree / _GITMODULES).is_file():
        return []
    entries = git(worktree, "ls-files", "--stage", "-z").split("\0")
    links = {
        entry.partition("\t")[2] for entry in entries if entry.startswith(f"{SUBMODULE_MODE} ")
    }
    words = ("config", "--null", "--file", _GITMODULES, "--get-regexp", r"^submodule\..*\.path$")
    listed = attempt(worktree, *words).output.split("\0")
    pairs = (entry.partition("\n") for entry in listed if entry)
    return [
        (key.removeprefix("submodule.").removesuffix(".path"), path)
        for key, _, path in pairs
        if path in links
    ]


def changed_in_working_tree(repository: Repository) -> tuple[str, ...]:
    """Return the submodules of the user's working tree with files that differ from their commit."""
    if not (repository.root / _GITMODULES).is_file():
        return ()
    listed = git(repository.root, "status", "--porcelain=v2", "--ignore-submodules=untracked", "-z")
    entries = (entry.split(" ", 8) for entry in listed.split("\0") if entry.startswith("1 "))
    return tuple(fields[8] for fields in entries if fields[2][2:3] == "M")


def uncommitted(root: Path) -> dict[str, str]:
    """Return the files in the worktree ``root`` that differ from its commit, with content hashes.

    These are the commit's files that were changed or removed, and importable ones that were added
    and that git doesn't ignore. What a build leaves (``build``, ``.perfci-build``, ``*.egg-info``)
    and bytecode is left out. A submodule counts as a file. Raises OutsideError if git fails.
    """
    output = git(
        root,
        *("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"),
        "--ignore-submodules=untracked",
    )
    entries = ((entry[:2].strip(), entry[3:]) for entry in output.split("\0") if entry)
    return {
        name: _digest(root / name)
        for state, name in entries
        if not state.startswith("?") or _is_importable(name)
    }


def written_since(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files that were written between two calls of ``uncommitted``."""
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def _is_importable(name: str) -> bool:
    path = PurePosixPath(name)
    return path.suffix in _IMPORTABLE and not any(
        part in _BUILT or part.endswith(".egg-info") for part in path.parts
    )


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if path.is_dir():
        return git(path, "rev-parse", "HEAD")
    if not path.is_file():
        return "no file"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
