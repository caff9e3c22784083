"""Makes, inspects and removes perfci's git worktrees, with the submodules of their trees.

Submodules come from the user's own clone, never from a server.
"""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfci.errors import UnbuiltCommit
from perfci.measure.checkout.disk import explaining, remove_folder
from perfci.measure.checkout.git import (
    GitResult,
    Repository,
    attempt,
    failure,
    files_of,
    git,
    readable,
    within,
)

PREFIX = "perfci-"
"""Begins the name of each worktree's folder. git names the worktree's registration like it."""
MODE = "160000"
"""git's mode of a submodule in a tree."""
SUBMODULE_COMMIT_MISSING = "submodule-commit-missing"
"""The error's slug if the user's clone of a submodule lacks the commit that a tree wants."""
_OWN_FOLDER = "perfci-submodules"
"""The folder in a worktree's registration for its submodules' git folders. Removed with it."""
_FILE = ".gitmodules"
_OFFLINE = {"GIT_NO_LAZY_FETCH": "1"}
"""Keeps git from fetching objects that a partial clone lacks."""
_PROBE_BYTES = 1 << 20
"""Size of a file that is written after a failed check-out, to learn why the disk refuses."""
_TRIES = 3
"""How often git is asked to register a worktree."""
_IMPORTABLE = frozenset({".py", ".so", ".pth"})
_BUILT = (".perfci-build", "build", "__pycache__")
"""Folders whose files come from a build or from Python."""


def new_name() -> str:
    """Return a new worktree's name. All names have the same length, and so do the paths.

    A path's length shifts a process's stack, which can change what is measured.
    """
    return PREFIX + secrets.token_hex(8)


def add_tree(
    repository: Repository,
    path: Path,
    commit: str,
    tree: str,
    submodules: Sequence[Submodule] = (),
) -> None:
    """Check ``tree`` out at ``path`` as a worktree of ``commit`` with a detached HEAD.

    The tree is the commit's own, or the same with other benchmark files. The ``submodules`` are
    checked out in it. OutsideError if that fails; ``remove_tree`` then removes what was made.
    """
    # In two steps, so that nothing is locked in the repository while files are written.
    _register(repository, path, commit)
    filling = ("read-tree", "--reset", "-u", tree)
    filled = attempt(path, *filling)
    if filled.status != 0:
        with explaining(f"checking out at {path}"):
            # git names a file that it can't write, but gives no reason.
            (path / f"{PREFIX}probe").write_bytes(bytes(_PROBE_BYTES))
        raise failure(filled, *filling)
    check_out_submodules(submodules, path)


def _register(repository: Repository, path: Path, commit: str) -> None:
    """Register a worktree. Try again if that fails: another git may have removed a folder.

    ``git worktree prune``, for instance, removes the folder of all registrations if it is empty.
    """
    arguments = ("worktree", "add", "--quiet", "--detach", "--no-checkout", str(path), commit)
    for _ in range(_TRIES - 1):
        if attempt(repository.root, *arguments).status == 0:
            return
    git(repository.root, *arguments)


def remove_tree(repository: Repository, path: Path) -> None:
    """Remove the worktree at ``path``, whole or half made, and its registration.

    git's own commands aren't used: ``git worktree prune`` would also remove the user's worktrees on
    a disk that isn't mounted now, and ``git worktree remove`` doesn't know a worktree whose making
    was cut short. OutsideError if a folder can't be removed.
    """
    registration = repository.common_dir / "worktrees" / path.name
    # The folder `worktrees` stays, even empty: another git may be about to write into it.
    with explaining(f"removing {path}"):
        for folder in (path, registration):
            if folder.exists():
                remove_folder(folder)


@dataclass(frozen=True, slots=True)
class Submodule:
    """A submodule of a tree, at any depth. ``path`` is relative to the tree's root.

    ``git_dir`` is the git folder in the user's clone that it is checked out from, or None if the
    clone has not initialised it. It is ``available`` where that folder has the ``commit``.
    """

    path: str
    commit: str
    git_dir: Path | None
    available: bool


def submodules_of(repository: Repository, tree: str) -> tuple[Submodule, ...]:
    """Return the submodules of git's ``tree``, each before those inside of it.

    Submodules inside of one that isn't available aren't known. OutsideError if git fails.
    """
    if _FILE not in files_of(repository.git_dir, tree):
        return ()
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
        return file  # the folder of a clone that was made in place, and then added
    return place / file.read_text("utf-8", "surrogateescape").removeprefix("gitdir:").strip()


def _stays_below(name: str) -> bool:
    """Return whether a submodule's name, which a commit declares, can't lead out of a folder."""
    return not name.startswith("/") and ".." not in PurePosixPath(name).parts


def _has(git_dir: Path, commit: str) -> bool:
    return _in(git_dir, "cat-file", "-e", f"{commit}^{{tree}}").status == 0


def _listed(git_dir: Path, *arguments: str) -> str:
    outcome = _in(git_dir, "ls-tree", "--full-tree", *arguments)
    if outcome.status != 0:
        raise failure(outcome, "ls-tree")
    return outcome.output


def _in(git_dir: Path, *arguments: str) -> GitResult:
    return attempt(git_dir, *within(git_dir), *arguments, environment=_OFFLINE)


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

    Each submodule borrows the objects of the user's clone. Its git folder lies in the worktree's
    registration, as with git itself, so that both are removed together. OutsideError if git or the
    disk fails.
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
    digits = git(source, *within(source), "rev-parse", "--show-object-format")
    git(
        place.parent,
        *("init", "--quiet", "--template=", f"--object-format={digits}"),
        *("--separate-git-dir", str(own), str(place)),
    )
    objects = git(source, *within(source), "rev-parse", "--git-path", "objects")
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
    tags = git(source, *within(source), "for-each-ref", form, "refs/tags")
    if tags:
        with tempfile.TemporaryFile("w+") as commands:
            commands.write(f"{tags}\n")
            commands.seek(0)
            attempt(place, "update-ref", "--stdin", given=commands)


def checked_out_in(worktree: Path) -> tuple[str, ...]:
    """Return the paths of the submodules that are checked out in a worktree, but no nested ones."""
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


def uncommitted(root: Path) -> dict[str, str]:
    """Return the files in the worktree ``root`` that differ from its commit, with content hashes.

    These are the commit's files that were changed or removed, and importable ones that were added
    and that git doesn't ignore. What a build leaves (``build``, ``.perfci-build``, ``*.egg-info``)
    and bytecode is left out. Submodules that are checked out are searched, too. Raises OutsideError
    if git fails.
    """
    output = git(
        root,
        *("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"),
        "--ignore-submodules=dirty",
    )
    entries = ((entry[:2].strip(), entry[3:]) for entry in output.split("\0") if entry)
    files = {
        name: _digest(root / name)
        for state, name in entries
        if not state.startswith("?") or _is_importable(name)
    }
    for path in checked_out_in(root):
        files |= {f"{path}/{name}": content for name, content in uncommitted(root / path).items()}
    return files


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
    if (path / ".git").exists():
        return f"submodule at {git(path, 'rev-parse', 'HEAD')}"
    if not path.is_file():
        return "no file"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
