"""A lock file that the system lets go of when its holder dies, however it dies."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from perfci.errors import OutsideError


class Lock:
    """A held ``flock``. Children don't inherit it: a worker that lives on holds nothing."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def release(self, *, remove: bool = False) -> None:
        """Let go; with ``remove``, of the file too (while held, so that nobody else has it)."""
        try:
            if remove:
                self.path.unlink(missing_ok=True)
        finally:
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def take(path: Path, *, shared: bool = False) -> Lock:
    """Wait for the lock at ``path`` and return it held."""
    return _take(path, shared=shared, wait=True)


def take_if_free(path: Path) -> Lock | None:
    """Return the lock at ``path`` held alone, or None where a living process has it."""
    try:
        return _take(path, shared=False, wait=False)
    except BlockingIOError:
        return None


def _take(path: Path, *, shared: bool, wait: bool) -> Lock:
    import fcntl  # not on Windows, which only reads

    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    while True:
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, how)
            same = _is_at(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        if same:
            return Lock(path, descriptor)
        os.close(descriptor)  # removed between opening and locking: that lock protects nothing


def _opened(path: Path) -> int:
    """Open the lock file. An empty folder in its place is removed; OutsideError for another."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except IsADirectoryError:
        try:
            path.rmdir()
        except OSError:
            raise OutsideError(
                "lock-is-folder",
                f"{path} is a folder, and perfci's lock file belongs there",
                "Look whose it is, and move it away.",
            ) from None
    return _opened(path)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
