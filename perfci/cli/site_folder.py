"""A folder of files that is replaced whole: a reader sees the old site or the new one."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perfci.errors import OutsideError, UsageError

_MARK = b'<meta name="generator" content="perfci trend">'
_FRONT = "index.html"
_WRITING, _REPLACED = ".writing-", ".replaced-"


def check_replaceable(folder: Path) -> None:
    """UsageError where ``folder`` holds something else than a site of ours: it would be lost."""
    with _told(folder):
        if not folder.exists():
            return
        if not folder.is_dir():
            raise UsageError("not-a-folder", f"{folder} is no folder", "Choose another.")
        if any(folder.iterdir()) and not _is_ours(folder):
            raise UsageError(
                "not-a-site",
                f"{folder} holds other files, and would be replaced",
                "Choose a new folder for --html, or empty that one.",
            )


def replace_folder(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write ``files`` (paths with ``/``, and bytes) beside ``folder``, then put them in its place.

    OutsideError where that can't be done; what was there before is then still there.
    """
    target = folder.resolve()
    check_replaceable(target)
    with _told(folder), _alone(target):
        new = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}{_WRITING}"))
        try:
            _fill(new, files)
            new.chmod(0o755)  # mkdtemp's 0700 would keep a web server out
            _swap(new, target)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise


def _fill(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    made = {folder}
    for name, content in files:
        path = folder / name
        if path.parent not in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.add(path.parent)
        path.write_bytes(content)


def _swap(new: Path, target: Path) -> None:
    """No call swaps two folders everywhere; between the two renames the folder is not there."""
    if not target.exists():
        new.rename(target)
        return
    old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}{_REPLACED}"))
    target.rename(old / target.name)
    try:
        new.rename(target)
    except BaseException:
        (old / target.name).rename(target)
        old.rmdir()
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Hold the folder around ``target``; what killed writers left there is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        for leftover in tuple(target.parent.iterdir()):
            if leftover.name.startswith(f".{target.name}{_WRITING}"):
                shutil.rmtree(leftover, ignore_errors=True)
            elif leftover.name.startswith(f".{target.name}{_REPLACED}"):
                _recover(leftover, target)
        yield
    finally:
        os.close(descriptor)


def _recover(leftover: Path, target: Path) -> None:
    """Put back what a writer that was killed between its two renames had taken away."""
    old = leftover / target.name
    if old.is_dir() and not target.exists():
        old.rename(target)
    shutil.rmtree(leftover, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    front = folder / _FRONT
    if not front.is_file():
        return False
    with front.open("rb") as file:
        return _MARK in file.read(4096)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutsideError(
            "unwritable",
            f"the site can't be written to {folder}: {error.strerror or error}",
            "Choose another folder, or make room; what was there before is intact.",
        ) from error
