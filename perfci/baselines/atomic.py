"""A folder that several processes write: locked, and each file replaced whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from perfci.errors import OutsideError
from perfci.files import folder_held

_TEMPORARY = ".writing-"
_ADVICE = {
    errno.ENOSPC: "Make room on that disk",
    errno.EDQUOT: "Make room in that quota",
    errno.EROFS: "It is mounted read-only: choose another folder (`baselines` in [tool.perfci])",
    errno.EACCES: "Give this user the right to write there",
    errno.EPERM: "Give this user the right to write there",
}


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold ``folder`` (made where it is missing) for this process alone."""
    with folder_held(folder):
        sweep(folder)
        yield


def replace_file(path: Path, text: str) -> None:
    """Write ``path``: flushed before it is renamed, its folder after. For who holds the lock."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=_TEMPORARY)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)  # mkstemp's 0600 would keep other users of a runner out
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def sweep(folder: Path) -> None:
    """Remove what killed writers left; under the lock nobody else is writing."""
    for leftover in folder.glob(f"{_TEMPORARY}*"):
        leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError into an OutsideError that says what to do."""
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "Make room or make it writable")
        raise OutsideError(
            "baseline-unwritable",
            f"baselines can't be written to {folder}: {error.strerror}",
            f"{advice}; what was stored before is intact.",
        ) from error
