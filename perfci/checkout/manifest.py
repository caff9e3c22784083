"""What a kept build consists of, so that one which was changed since isn't measured as it.

What is measured runs as the same user as perfci, and may write to the build it is measured in: by
a mistake, or so that later commits are compared with something slower. The manifest lies beside
the build and can be forged by whoever forges that; see docs/security.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_CACHE = "__pycache__"


@dataclass(frozen=True, slots=True)
class Differences:
    """Paths below the tree. ``bytecode`` is what Python writes beside what it imports."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    bytecode: tuple[str, ...] = ()


def make_manifest(tree: Path) -> str:
    """Return the manifest of all that lies below ``tree``, which nobody writes to. OSError."""
    return json.dumps({name: _told(entry) for name, entry in _entries(tree)})


def compare_with(manifest: str, tree: Path) -> Differences:
    """Return how ``tree`` differs from what it was; ValueError where that is no manifest.

    All bytecode that differs is told apart: Python makes it anew. What was added isn't read.
    """
    kept = json.loads(manifest)
    if not isinstance(kept, dict) or not kept:
        raise ValueError("no manifest")
    if tree.is_symlink():
        return Differences(changed=(".",))
    added: list[str] = []
    bytecode: list[str] = []
    changed: set[str] = set()
    left = {name for name in kept if not _is_bytecode(name)}
    try:
        for name, entry in _entries(tree, lambda name: name in kept or _is_bytecode(name)):
            left.discard(name)
            if name in kept and _told(entry, kept[name]) == kept[name]:
                continue
            if _is_bytecode(name):
                bytecode.append(name)
            elif name in kept:
                changed.add(name)
            else:
                added.append(name)
    except OSError as error:  # a folder that may no longer be read was changed
        changed.add(os.path.relpath(error.filename, tree) if error.filename else ".")
    return Differences(tuple(sorted(changed | left)), tuple(sorted(added)), tuple(bytecode))


def _entries(
    tree: Path, enter: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the paths below ``tree``, those in folders that ``enter`` refuses left out.

    Links aren't followed. Without recursion: a benchmark can nest folders without end.
    """
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(tree / below) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            name = f"{below}/{entry.name}" if below else entry.name
            yield name, entry
            if entry.is_dir(follow_symlinks=False) and enter(name):
                waiting.append(name)


def _told(entry: os.DirEntry[str], kept: object = None) -> list[object]:
    """Return what tells one entry: its mode, size and SHA-256, or where a link leads.

    A file whose mode or size isn't that of ``kept`` isn't read: it is another one anyway.
    """
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        return ["link", str(Path(entry.path).readlink())]
    if not stat.S_ISREG(status.st_mode):
        return ["other", status.st_mode]
    said = ["file", status.st_mode, status.st_size]
    if isinstance(kept, list) and kept[:3] != said:
        return said
    descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return [*said, digest.hexdigest()]


def _is_bytecode(name: str) -> bool:
    folder, _, file = name.rpartition("/")
    inside = folder == _CACHE or folder.endswith(f"/{_CACHE}")
    return file == _CACHE or (inside and file.endswith(".pyc"))
