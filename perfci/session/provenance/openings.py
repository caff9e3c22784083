"""Which of some files any process opened, as the kernel says: inotify(7).

The watch in a worker sees what Python opens. The kernel sees what its C code opens, too, and the
programs that it starts, whatever a benchmark writes into the file of the watch.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from perfci.checkout.differing import bytecode_of

_EVENT = struct.Struct("iIII")
_MODIFY, _ATTRIB, _OPEN, _DELETE_SELF, _MOVE_SELF = 0x2, 0x4, 0x20, 0x400, 0x800
_DONT_FOLLOW = 0x02000000
_MASK = _MODIFY | _ATTRIB | _OPEN | _DELETE_SELF | _MOVE_SELF | _DONT_FOLLOW
_OVERFLOW = 0x4000
_BUFFER = 1 << 16


class Openings:
    """What was opened of ``files`` (real, absolute paths) since it was made.

    A file counts by its inode, under whatever name it is opened, and so does the bytecode that
    Python opens in its place. Where not all of them can be followed, and of None, ``complete`` is
    False, and nothing that it says is of use.
    """

    def __init__(self, files: Iterable[str] | None) -> None:
        self._files = tuple(files or ())
        self._paths: dict[int, set[str]] = {}
        self._descriptor = -1
        self.complete = False
        if files is None:
            return
        try:
            self._descriptor = _begin()
            for path in self._files:
                if Path(path).exists():
                    self._follow(path, path)
                for made in bytecode_of(Path(path)):
                    self._follow(str(made), path)
            self.complete = self._works()
        except OSError:  # no inotify here, or more files than the user may follow
            self.close()

    def taken(self) -> frozenset[str]:
        """Return the files that were opened, written or moved since this was last asked."""
        opened: set[str] = set()
        while self._descriptor >= 0:
            try:
                events = os.read(self._descriptor, _BUFFER)
            except BlockingIOError:
                break
            at = 0
            while at < len(events):
                watch, mask, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                if mask & _OVERFLOW:
                    self.complete = False
                opened |= self._paths.get(watch, set())
        return frozenset(opened)

    def close(self) -> None:
        """Follow nothing any more."""
        self.complete = False
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _follow(self, path: str, means: str) -> None:
        call = ctypes.CDLL(None, use_errno=True).inotify_add_watch
        number = call(self._descriptor, os.fsencode(path), _MASK)
        if number < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch", path)
        self._paths.setdefault(number, set()).add(means)

    def _works(self) -> bool:
        """Open each file, and see whether the kernel says so: not every file system's does."""
        there = {path for path in self._files if Path(path).exists()}
        for path in there:
            with suppress(PermissionError):
                os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        return self.taken() == there


def _begin() -> int:
    number: int = ctypes.CDLL(None, use_errno=True).inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if number < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    return number
