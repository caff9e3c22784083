"""Reading files that others wrote, or committed: a link to /dev/zero would be read for ever."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MOST_BYTES = 64 << 20
"""No baseline, report or configuration comes near it."""


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a regular file. OSError for anything else, and for one too large."""
    # not blocking, or opening a pipe would wait for its writer
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(path))
    return content
