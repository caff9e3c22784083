"""The list of its own files that a site carries: what isn't on it is the user's, and never removed.

It is written ahead of each file, so that what a killed writer left is listed, too. Its name has no
dot in front: what uploads a folder often leaves hidden files out, and the site would be a stranger.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

MANIFEST = "perfci-site.txt"
_BEGINNING = (
    b"# perfci trend wrote the files below, and replaces this folder with its next report.\n"
)


def fill(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write ``files`` (paths with ``/``, and bytes) and their list into the empty ``folder``."""
    made = {folder}
    with (folder / MANIFEST).open("xb", buffering=0) as manifest:
        manifest.write(_BEGINNING)
        for name, content in files:
            path = folder / name
            manifest.write(os.fsencode(name) + b"\n")
            if path.parent not in made:
                path.parent.mkdir(parents=True, exist_ok=True)
                made.add(path.parent)
            path.write_bytes(content)


def strangers(folder: Path) -> Iterator[str]:
    """Yield what is in ``folder`` and not on its list; folders end in ``/``, and stand for theirs.

    Without a list all of it is strange. OSError where it can't be looked through.
    """
    listed = _listed(folder)
    folders = {str(parent) for name in listed for parent in PurePosixPath(name).parents}
    yield from _strangers(folder, "", listed, folders)


def _strangers(folder: Path, before: str, listed: set[str], folders: set[str]) -> Iterator[str]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        name = f"{before}{entry.name}"
        if not entry.is_dir(follow_symlinks=False):
            if name not in listed:
                yield name
        elif name in folders:
            yield from _strangers(Path(entry.path), f"{name}/", listed, folders)
        else:
            yield f"{name}/"


def _listed(folder: Path) -> set[str]:
    manifest = folder / MANIFEST
    if manifest.is_symlink() or not manifest.is_file():
        return set()
    with manifest.open("rb") as file:
        if file.readline() != _BEGINNING:
            return set()
        return {MANIFEST, *(os.fsdecode(line.rstrip(b"\n")) for line in file)}
