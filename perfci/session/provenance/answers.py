"""What whoever looks at a file or a folder is told, without reading it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from stat import S_IFMT

_METADATA = (".dist-info", ".egg-info", ".egg")
_NOT_COMPARED = frozenset({"__pycache__", ".git"})


def answer(how: str, path: Path) -> str:
    """Return a hash of what is told, of a folder name by name.

    Times are left out: these differ between any two trees.
    """
    try:
        told = "\0".join(sorted(_entries(how, path)))
    except OSError as error:  # a name that is too long, a folder that may not be entered
        told = f"error {error.errno}"
    return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()


def _entries(how: str, path: Path) -> Iterator[str]:
    if not path.exists():
        return
    if how == "stat":
        status = path.stat()
        yield f"{oct(status.st_mode)} {'' if path.is_dir() else status.st_size}"
        return
    if not path.is_dir():
        yield "no folder"
        return
    yield "folder"
    for name in {one.name for one in path.iterdir()} - _NOT_COMPARED:
        if how != "distributions" or name.endswith(_METADATA):
            yield f"/{name}\0{_kind(path / name, how) if how in {'kinds', 'sizes'} else ''}"


def _kind(path: Path, how: str) -> str:
    status = path.lstat()
    size = status.st_size if how == "sizes" and not path.is_dir() else ""
    return f"{S_IFMT(status.st_mode)} {size}"
