"""Outputs of a command: notices while it works, and the files and folders it writes at the end.

Paths are checked before the work, and written after it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Protocol

from perfci.errors import OutsideError, UsageError, joined_error
from perfci.files import folder_held, require_writable, write_file
from perfci.model.report import Report
from perfci.report.clean import clean_line
from perfci.units import first_of

STANDARD_OUTPUT = Path("-")
"""The path ``-``: the caller prints this output itself. It never means a file of that name."""
MANIFEST = "perfci-site.txt"
"""The file in a site's folder that lists the site's files, so that no other file is removed."""
_BEGINNING = (
    b"# perfci trend wrote the files below, and replaces this folder with its next report.\n"
)
"""The manifest's first line."""
_SHOWN = 3
"""Foreign files that an error names."""
_WRITING, _REPLACED = ".writing-", ".replaced-"
"""Parts of the names of temporary folders next to a site: for its new files, and for its old."""


Announce = Callable[[str], None]
"""Shows one line about the next step. The line stays on the screen."""


class Say(Protocol):
    """Takes one line. ``err`` is set for lines that are no part of the result, as a warning."""

    def __call__(self, text: str, /, *, err: bool = False) -> None:
        """Show, keep or drop ``text``, which may quote untrusted names."""


def silent(_: object, *, err: bool = False) -> None:
    """Drop a line."""


def files_of(outputs: Mapping[str, Path]) -> dict[str, Path]:
    """Return the outputs that are files."""
    return {name: path for name, path in outputs.items() if path != STANDARD_OUTPUT}


def require_distinct(
    outputs: Mapping[str, Path],
    history: Iterable[Path] = (),
    folders: Mapping[str, Path] | None = None,
) -> None:
    """Raise UsageError if two outputs are one file, or if one is a file of the ``history``.

    Keys are the outputs' names as the user knows them. ``folders`` are replaced whole, so neither
    an output nor the history may lie in one. A link counts as the file that it leads to.
    """
    folders = folders or {}
    kept = tuple(history)
    for name, path in outputs.items():
        if any(_same(path, other) for other in kept):
            raise UsageError(
                "output-is-history",
                f"{name} is the history itself, {path}, which would be overwritten",
                f"Choose another file for {name}.",
            )
    for (name, path), (other, place) in combinations(outputs.items(), 2):
        if _same(path, place):
            raise UsageError(
                "same-output",
                f"{name} and {other} are one file, {path}, and only one would be left",
                "Choose a file for each.",
            )
    for name, folder in folders.items():
        inside = [f"{other} ({path})" for other, path in outputs.items() if _holds(folder, path)]
        inside += [f"the history ({path})" for path in kept[:1] if _holds(folder, path)]
        if inside:
            raise UsageError(
                "output-in-folder",
                f"{name} is replaced whole, and {inside[0]} would be in it: {folder}",
                f"Choose an empty folder for {name}.",
            )


def _same(path: Path, other: Path) -> bool:
    """Return whether both paths are one file. Devices and pipes aren't: they take many texts."""
    if os.path.realpath(path) == os.path.realpath(other):
        return not path.exists() or path.is_file()
    try:
        first, two = path.stat(), other.stat()
    except OSError:  # missing or out of reach, which the writing reports
        return False
    return stat.S_ISREG(first.st_mode) and os.path.samestat(first, two)


def _holds(folder: Path, path: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def check_writable(outputs: Mapping[str, Path], history: Iterable[Path] = ()) -> None:
    """Raise an error before anything is measured if an output can't be written afterwards.

    The same if writing it would destroy another output or a file of the ``history``.
    """
    require_distinct({f"--{name}": path for name, path in outputs.items()}, history)
    for path in files_of(outputs).values():
        with writing(path):
            require_writable(path)


def rendered(report: Report, outputs: Mapping[str, Path]) -> dict[Path, str]:
    """Return the text of every requested file. UsageError for a broken exporter."""
    from perfci.report.exporters import named

    return {path: named(name).text(report) for name, path in outputs.items()}


def write_files(files: Mapping[Path, str], besides: str = "") -> None:
    """Write every file. After all were tried, raise one error that names those that failed."""
    problems = []
    for path, text in files.items():
        try:
            with writing(path, besides):
                write_file(path, text)
        except OutsideError as error:
            problems.append(error)
    if problems:
        raise joined_error(problems)


@contextmanager
def writing(path: Path, besides: str = "") -> Iterator[None]:
    """Turn an OSError of the block, which writes ``path``, into the error for users."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error, besides) from error


def unwritable(path: Path, error: OSError, besides: str = "") -> OutsideError:
    """Return the error for a file that can't be written. ``besides`` ends its advice."""
    blocked = isinstance(error, (FileExistsError, NotADirectoryError))
    reason = "a part of the path is a file, not a folder" if blocked else error.strerror or error
    return OutsideError(
        "unwritable",
        f"{path} can't be written: {reason}",
        f"Choose another path, or make room. {besides}".rstrip(),
    )


def fill(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write ``files`` (paths with ``/``, and bytes) and the manifest into the empty ``folder``."""
    made = {folder}
    with (folder / MANIFEST).open("xb", buffering=0) as manifest:
        manifest.write(_BEGINNING)
        for name, content in files:
            path = folder / name
            manifest.write(os.fsencode(name) + b"\n")  # first: the list is whole even after a kill
            if path.parent not in made:
                path.parent.mkdir(parents=True, exist_ok=True)
                made.add(path.parent)
            path.write_bytes(content)


def foreign_files(folder: Path) -> Iterator[str]:
    """Yield the files in ``folder`` that its manifest lacks, and such folders, with a final ``/``.

    Without a manifest every entry is foreign. OSError if the folder can't be read.
    """
    listed = _listed(folder)
    folders = {str(parent) for name in listed for parent in PurePosixPath(name).parents}
    yield from _foreign_files(folder, "", listed, folders)


def _foreign_files(folder: Path, before: str, listed: set[str], folders: set[str]) -> Iterator[str]:
    with os.scandir(folder) as scanned:
        entries = sorted(scanned, key=lambda entry: entry.name)
    for entry in entries:
        name = f"{before}{entry.name}"
        if not entry.is_dir(follow_symlinks=False):
            if name not in listed:
                yield name
        elif name in folders:
            yield from _foreign_files(Path(entry.path), f"{name}/", listed, folders)
        else:
            yield f"{name}/"


def _listed(folder: Path) -> set[str]:
    """Return the files that the manifest lists, itself included. Empty without a manifest."""
    manifest = folder / MANIFEST
    if manifest.is_symlink() or not manifest.is_file():
        return set()
    with manifest.open("rb") as file:
        first = file.readline()
        if first != _BEGINNING:  # a full disk, or a kill, may have cut the first line short
            return {MANIFEST} if _BEGINNING.startswith(first) else set()
        return {MANIFEST, *(os.fsdecode(line.rstrip(b"\n")) for line in file)}


def check_replaceable(folder: Path) -> None:
    """Raise UsageError if ``folder`` holds files that aren't a report's: they would be lost."""
    with _disk_errors(folder):
        if not folder.exists():
            return
        if not folder.is_dir():
            raise UsageError("not-a-folder", f"{folder} is no folder", "Choose another.")
        others = list(foreign_files(folder))
        if others:
            shown = first_of([clean_line(name, 80) for name in others], _SHOWN)
            raise UsageError(
                "not-a-site",
                f"{folder} holds other files than a report's own ({MANIFEST} lists those), "
                f"and would be replaced: {shown}",
                "Choose a new folder for --html, or move those files out of that one.",
            )


def replace_folder(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write ``files`` (paths with ``/``, and bytes) to a new folder, and replace ``folder`` by it.

    OutsideError if that fails. The earlier content is then still in place.
    """
    from tempfile import mkdtemp

    target = folder.resolve()
    check_replaceable(target)
    with _disk_errors(folder), _alone(target):
        new = Path(mkdtemp(dir=target.parent, prefix=f".{target.name}{_WRITING}"))
        try:
            fill(new, files)
            new.chmod(0o755)  # mkdtemp's 0700 would keep a web server out
            check_replaceable(target)  # once more: rendering takes a while
            _swap(new, target)
        except BaseException:
            _remove(new)
            raise


def _swap(new: Path, target: Path) -> None:
    """Replace ``target`` by ``new`` with two renames: no call swaps folders on every system."""
    from tempfile import mkdtemp

    if not target.exists():
        new.rename(target)
        return
    old = Path(mkdtemp(dir=target.parent, prefix=f".{target.name}{_REPLACED}"))
    target.rename(old / target.name)
    try:
        new.rename(target)
    except BaseException:
        (old / target.name).rename(target)
        old.rmdir()
        raise
    _recover(old, target)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Lock the folder around ``target``, and clean up the folders that killed writers left."""
    with folder_held(target.parent):
        for leftover in tuple(target.parent.iterdir()):
            if leftover.name.startswith(f".{target.name}{_WRITING}"):
                _remove(leftover)
            elif leftover.name.startswith(f".{target.name}{_REPLACED}"):
                _recover(leftover, target)
        yield


def _recover(leftover: Path, target: Path) -> None:
    """Remove the old site, or put it back if its writer was killed between the two renames."""
    old = leftover / target.name
    if old.is_dir() and not target.exists():
        old.rename(target)
    _remove(old)
    with suppress(OSError):  # the folder holds something else
        leftover.rmdir()


def _remove(folder: Path) -> None:
    """Remove an old site. Leave a folder alone that holds any file the manifest lacks."""
    if not folder.is_dir() or folder.is_symlink() or any(foreign_files(folder)):
        return
    with suppress(OSError):  # the folder stays, and the next report removes it
        for entry in folder.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif (
                entry.name != MANIFEST
            ):  # the manifest goes last: after a kill, files without it would look foreign
                entry.unlink()
        shutil.rmtree(folder)


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutsideError(
            "unwritable",
            f"the site can't be written to {folder}: {error.strerror or error}",
            "Choose another folder, or make room. The earlier content is intact.",
        ) from error
