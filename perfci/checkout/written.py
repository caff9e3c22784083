"""Whether a worktree's sources are at a session's end what they were at its beginning."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from perfci.checkout.command import git
from perfci.checkout.submodules import checked_out_in

_UNTRACKED = "?"
_IMPORTABLE = frozenset({".py", ".so", ".pth"})
_BUILT = (".perfci-build", "build", "__pycache__")


def uncommitted(root: Path) -> dict[str, str]:
    """Return what differs from the commit in the worktree ``root``, each with its content's hash.

    These are the commit's files that were changed or removed, and importable ones that were added
    and that git doesn't ignore. What a build leaves (``build``, ``.perfci-build``, ``*.egg-info``)
    and bytecode is left out. Submodules that are checked out are looked into. Raises OutsideError
    where git fails.
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
        if not state.startswith(_UNTRACKED) or _is_importable(name)
    }
    for path in checked_out_in(root):
        files |= {f"{path}/{name}": one for name, one in uncommitted(root / path).items()}
    return files


def written_since(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files that were written between two answers of ``uncommitted``."""
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
