"""Writing files that were named: whole or not at all, and never waiting for a pipe's reader."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

_OWN = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
"""What this process has open already, so that somebody reads it."""
_NOT_BESIDE = {errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.EROFS}
"""No file may be made beside it, or none put in its place: it may be a mount of its own."""


def require_file(path: Path) -> None:
    """Return where ``path`` can be written without waiting: a file, a device, or nothing yet.

    OSError for a pipe or a folder. A pipe that this process was given (``/dev/stdout``) will do.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode) or _is_own(path)):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))


def require_writable(path: Path) -> None:
    """Return where ``path`` could be written; its folder is made. OSError where it can't."""
    path.parent.mkdir(parents=True, exist_ok=True)
    require_file(path)
    target = path if _is_own(path) else Path(os.path.realpath(path))  # a link stays, broken or not
    existed = target.exists()
    with target.open("ab"):
        pass
    if not existed:
        target.unlink()


def write_file(path: Path, text: str) -> None:
    """Write ``path``. OSError where it can't be, and then a file that was there stays as it was.

    A file that nobody may put another in the place of is written as it stands.
    """
    require_file(path)
    content = text.encode("utf-8")
    if _is_own(path) or (path.exists() and not path.is_file()):
        path.write_bytes(content)
        return
    target = Path(os.path.realpath(path))  # where a link leads, there or not yet: the link stays
    beside = target.with_name(f".perfci-{secrets.token_hex(8)}")
    try:
        _replace(target, beside, content)
    except OSError as error:
        beside.unlink(missing_ok=True)
        if error.errno not in _NOT_BESIDE or not target.exists():
            raise
        target.write_bytes(content)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _replace(target: Path, beside: Path, content: bytes) -> None:
    with beside.open("xb") as file:  # with the rights that the umask leaves
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if target.exists():
        beside.chmod(stat.S_IMODE(target.stat().st_mode))
    beside.replace(target)


def _is_own(path: Path) -> bool:
    return str(path).startswith(_OWN)
