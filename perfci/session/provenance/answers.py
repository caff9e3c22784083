"""What whoever looks at a file or a folder is told, without reading it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from stat import S_IFMT

_METADATA = (".dist-info", ".egg-info", ".egg")
_NOT_COMPARED = frozenset({"__pycache__", ".git"})


def answer(how: str, path: Path) -> str:
    """Return ``entries`` as one text."""
    told = "\0".join(sorted(entries(how, path)))
    return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()


def entries(how: str, path: Path) -> frozenset[str]:
    """Return what is told, of a folder name by name; nothing where nothing is there.

    Times are left out: these differ between any two trees.
    """
    try:
        return frozenset(_entries(how, path))
    except OSError as error:  # a name that is too long, a folder that may not be entered
        return frozenset({f"error {error.errno}"})


def _entries(how: str, path: Path) -> Iterator[str]:
    if not path.exists():
        return
    if how in {"stat", "exists"}:
        status = path.stat()
        size = status.st_size if how == "stat" and not path.is_dir() else ""
        yield f"{oct(status.st_mode)} {size}"
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
