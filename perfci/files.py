"""Files that are read strictly and written whole or not at all, and folders that are locked.

Works on any system. Reports are read, joined and rendered on systems other than Linux, too.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perfci.errors import OutsideError


def expanded(written: str) -> Path:
    """Return a path with its ``~`` expanded. As in a shell, the ``~`` of an unknown user stays."""
    try:
        return Path(written).expanduser()
    except RuntimeError:
        return Path(written)


def from_here(written: str) -> str:
    """Return a path as an absolute one. An address with ``://`` stays as it is."""
    return written if "://" in written or not written else str(expanded(written).absolute())


# Reading. Only regular files are read: a link to /dev/zero would be read for ever.

MOST_BYTES = 64 << 20
"""The largest file that is read. No baseline, report or configuration comes near it."""


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a regular file. OSError for anything else, and for one too large."""
    # not blocking, or opening a pipe would wait for its writer; Windows has no such files
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(path))
    return content


def parse_toml(text: str) -> dict[str, Any]:
    """Return TOML's tables. ValueError, which says why, for invalid or implausible TOML.

    Implausible are whole numbers of over 4,300 digits, which Python refuses, and lists that are
    nested deeper than Python's recursion limit.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        raise ValueError("it holds a number of thousands of digits") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None


# Writing files that a user named: whole or not at all, and never waiting for a pipe's reader.

_OWN = re.compile(r"/dev/(?:stdout|stderr)|/(?:dev|proc/self)/fd/(?P<number>[0-9]{1,9})")
"""Paths of files that this process has open already. A pipe among them has a reader."""
_NOT_BESIDE = {errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.EROFS}
"""Errors that mean: no file can be made next to the target, or take its place.

The target may be a mount.
"""


def require_file(path: Path) -> None:
    """Raise OSError unless ``path`` can be written without waiting.

    It may be a file, a device, or nothing yet. Folders and pipes are refused, but not a pipe that
    this process was given (``/dev/stdout``).
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode) or _own(path) is not None):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def require_writable(path: Path) -> None:
    """Raise OSError unless ``path`` could be written. Its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    require_file(path)
    own = _own(path) is not None
    target = path if own else Path(os.path.realpath(path))  # a link stays, broken or not
    existed = target.exists()
    with target.open("ab"):
        pass
    if not existed:
        target.unlink()


def write_file(path: Path, text: str) -> None:
    """Write ``path``, or raise OSError and leave the file that was there as it was.

    A file that can't be replaced is written in place.
    """
    write_lines(path, (text.encode("utf-8"),))


def write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write ``lines`` like the text of ``write_file``. They are consumed once, one at a time."""
    require_file(path)
    own = _own(path)
    if own is not None:
        # the open file itself: opened again by its path, a file would be written from its
        # beginning, over what was printed to it
        with os.fdopen(os.dup(own), "wb") as opened:
            opened.writelines(lines)
        return
    target = Path(os.path.realpath(path))  # where a link leads, there or not yet: the link stays
    if path.exists() and not path.is_file():
        _write_as_it_stands(target, lines)
        return
    beside = target.with_name(f".perfci-{secrets.token_hex(8)}")
    try:
        file = beside.open("xb")
    except OSError as error:
        _require_in_place(target, error)
        _write_as_it_stands(target, lines)
        return
    try:
        with file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        _put_in_place(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def _put_in_place(beside: Path, target: Path) -> None:
    try:
        if target.exists():
            beside.chmod(stat.S_IMODE(target.stat().st_mode))
        beside.replace(target)
    except OSError as error:
        _require_in_place(target, error)
        shutil.copyfile(beside, target)


def _require_in_place(target: Path, error: OSError) -> None:
    """Raise ``error`` again, unless ``target`` can be written in place instead of replaced."""
    if error.errno not in _NOT_BESIDE or not target.exists():
        raise error


def _write_as_it_stands(target: Path, lines: Iterable[bytes]) -> None:
    with target.open("wb") as file:
        file.writelines(lines)


def _own(path: Path) -> int | None:
    """Return the descriptor of this process that ``path`` stands for, or None."""
    match = _OWN.fullmatch(str(path))
    if match is None:
        return None
    return int(match["number"] or {"/dev/stdout": 1, "/dev/stderr": 2}[match[0]])


# Folders that several processes write.


@contextmanager
def folder_held(folder: Path) -> Iterator[None]:
    """Hold ``folder`` for this process alone. It is made if it is missing.

    The folder's own descriptor is locked: no lock file is left in it. Windows can't open a folder.
    Nothing is locked there.
    """
    if sys.platform == "win32":
        folder.mkdir(parents=True, exist_ok=True)
        yield
        return
    import fcntl

    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # removed since it was made
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_still(descriptor, folder):
                yield
                return
        finally:
            os.close(descriptor)


def _is_still(descriptor: int, folder: Path) -> bool:
    """Return whether the open folder is still there: its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except FileNotFoundError:
        return False


@contextmanager
def writing(path: Path, besides: str = "") -> Iterator[None]:
    """Turn an OSError of the block, which writes ``path``, into the error for users.

    ``besides`` ends its advice.
    """
    try:
        yield
    except OSError as error:
        blocked = isinstance(error, (FileExistsError, NotADirectoryError))
        why = "a part of the path is a file, not a folder" if blocked else error.strerror or error
        raise OutsideError(
            "unwritable",
            f"{path} can't be written: {why}",
            f"Choose another path, or make room. {besides}".rstrip(),
        ) from error


@contextmanager
def reading(path: Path, advice: str) -> Iterator[None]:
    """Turn an OSError of the block, which reads ``path``, into the error for users."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise OutsideError("unreadable", f"{path} can't be read: {why}", advice) from error
