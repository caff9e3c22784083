"""What whoever looks at a file or a folder is told, without reading it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from stat import S_IFMT

_METADATA = (".dist-info", ".egg-info", ".egg")
_IMPORTED = (".py", ".pyc", ".so")
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
    if how == "module":
        yield from _modules(path)
        return
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


def _modules(path: Path) -> Iterator[str]:
    """Yield what a finder has to choose from for the module of this path, without a suffix."""
    folder = path.parent
    if not folder.is_dir():
        return
    for name in _by_module(str(folder), folder.stat().st_mtime_ns).get(path.name, ()):
        one = folder / name
        if one.is_dir():
            yield f"/{name} {'package' if any(one.glob('__init__.*')) else 'namespace'}"
        elif name.endswith(_IMPORTED):
            yield f"/{name}"


@lru_cache(maxsize=512)
def _by_module(folder: str, _changed_ns: int) -> Mapping[str, Sequence[str]]:
    """Return the names in a folder by what comes before their first dot."""
    found: dict[str, list[str]] = {}
    for one in Path(folder).iterdir():
        found.setdefault(one.name.partition(".")[0], []).append(one.name)
    return found


def _kind(path: Path, how: str) -> str:
    status = path.lstat()
    size = status.st_size if how == "sizes" and not path.is_dir() else ""
    return f"{S_IFMT(status.st_mode)} {size}"
