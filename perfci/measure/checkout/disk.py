"""Errors of a full or read-only disk, removal of whole folders, lock files, and scratch folders."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from perfci.errors import OutsideError

_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
"""The system's words for a full disk, or a used-up quota."""
_REFUSED = tuple(os.strerror(code) for code in (errno.EROFS, errno.EACCES, errno.EPERM))
"""The system's words for a disk or a folder that may not be written."""


def disk_error(doing: str, text: str) -> OutsideError | None:
    """Return the error for a disk that is full or refuses writes, or None for any other trouble.

    ``text`` is what git or the system reported. Both use the same words.
    """
    if any(words in text for words in _FULL):
        return OutsideError(
            "disk-full",
            f"{doing}: the disk is full: {text}",
            "Make room on it, or set PERFCI_CACHE_DIR to a folder on a disk that has some: "
            "worktrees and builds are kept there.",
        )
    if any(words in text for words in _REFUSED):
        return OutsideError(
            "unwritable",
            f"{doing}: not allowed to write: {text}",
            "perfci writes worktrees and builds below PERFCI_CACHE_DIR (set it to a folder that "
            "can be written) and registers them in the repository's .git folder, which must be "
            "writable too. If it isn't, measure in a clone.",
        )
    return None


@contextmanager
def explaining(doing: str) -> Iterator[None]:
    """Turn an OSError of the block into an OutsideError with what to do."""
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
        raise disk_error(doing, reason) or OutsideError(
            "disk-failed",
            f"{doing}: {reason}",
            "See that the disk is healthy, or set PERFCI_CACHE_DIR to a folder on another one.",
        ) from error


def remove_folder(folder: Path) -> None:
    """Remove ``folder`` and all below it, write-protected and very deep folders included.

    If ``folder`` is a link, only the link is removed. OSError if something can't be removed; the
    rest is removed all the same.
    """
    if folder.is_symlink():
        folder.unlink()
        return
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        # Another process removed something first, or folders are protected, or they are nested
        # deeper than Python can go, because it keeps each one open on its way down.
        _run("chmod", "-R", "u+rwX", "--", str(folder))
        if reason := _run("rm", "-rf", "--", str(folder)):
            raise OSError(reason) from None


def _run(*command: str) -> str:
    """Run a command, and return the end of what it says if it fails."""
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        command, env=environment, capture_output=True, errors="replace", check=False
    )
    return done.stderr.strip()[-300:] if done.returncode else ""


class FolderLock(AbstractContextManager["FolderLock"]):
    """A held ``flock``. Children don't inherit it: a worker that outlives perfci holds no lock."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def release(self, *, remove: bool = False) -> None:
        """Release the lock. ``remove`` deletes its file first, while no one else can hold it."""
        try:
            if remove:
                self.path.unlink(missing_ok=True)
        finally:
            os.close(self._descriptor)

    def __exit__(self, *error: object) -> None:
        self.release()


def take_if_free(path: Path) -> FolderLock | None:
    """Return the lock at ``path`` held alone, or None if a living process has it."""
    try:
        return take(path, wait=False)
    except BlockingIOError:
        return None


def take(path: Path, *, shared: bool = False, wait: bool = True) -> FolderLock:
    """Return the lock at ``path`` held. BlockingIOError if ``wait`` is false and it isn't free."""
    import fcntl  # not on Windows, which only reads

    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, how)
            same = _is_at(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        if same:
            return FolderLock(path, descriptor)
        os.close(descriptor)  # the file was removed before it was locked: this lock is worthless


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def scratch_folder(cache: Path) -> Iterator[Path]:
    """Yield a folder for this session alone. First remove the folders that killed sessions left.

    A session holds its folder's lock file. The system releases the lock however the session ends.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        for left in cache.glob("session-*.lock"):
            if abandoned := take_if_free(left):
                with suppress(OSError):
                    remove_folder(left.with_suffix(""))
                abandoned.release(remove=True)
        folder = cache / f"session-{secrets.token_hex(6)}"
        lock = take(folder.with_suffix(".lock"))
        try:
            folder.mkdir()
        except OSError:
            lock.release(remove=True)
            raise
    except OSError as error:
        raise OutsideError(
            "unwritable",
            f"the cache folder {cache} can't be written: {error.strerror}",
            "Make room, or set PERFCI_CACHE_DIR to a folder on a disk that has some.",
        ) from error
    try:
        yield folder
    finally:
        with suppress(OSError):
            remove_folder(folder)
        lock.release(remove=True)
