"""Records the events of a process in a file that the parent reads.

Each event is written at once, so that ``os._exit`` or a signal loses nothing. A C library that is
preloaded (``looks.c``) also writes which files any code of the process looks at. It takes orders in
the form of paths passed to ``access(2)``. Without the library, these paths don't exist, and the
orders do nothing.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # as in ``ownership``
if TYPE_CHECKING:
    from collections.abc import Sequence

ask = os.access
"""Gives the library an order: ``ask(order, 0)``. Returns its answer."""
_CONTROL = b"/\x01perfci-looks/"
PAUSE, GO_ON = _CONTROL + b"+", _CONTROL + b"-"
"""Orders: ignore the files that this thread looks at; record them again."""
_BETWEEN, _END = "\x1f", "\0"
"""Characters between an event's fields, and after an event."""
_GREETING_S = 2.0
"""Longest wait for children to report that they are watched."""
_BELOW = frozenset({"exec", "list", "open", "stat"})
"""Events that the library writes by itself: ``Record`` doesn't keep them."""


class Record:
    """The events of this process, in the file that its worker and all its children write to."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._seen: dict[tuple[str, str, str], None] = {}
        self._late: list[bytes] = []  # lines that could not be written yet
        self._why_late = ""
        self._descriptor = -1
        self._inode = (0, 0)

    def say(self, how: str, path: str, name: str = "") -> None:
        """Write down an event, once."""
        key = (how, path, name)
        if key not in self._seen:
            self._seen[key] = None
            self._write(how, path, name)

    def greet(self) -> None:
        """Write down that this process is watched."""
        self._write("watched", sys.executable or "", str(os.getpid()))

    def looked(self) -> None:
        """Write down that this process has recorded everything that it had loaded."""
        self._write("looked", "", str(os.getpid()))

    def go_on_in(self, file: str) -> None:
        """Continue in this fork's own file. Events so far are written to it first."""
        with open(self._file, "rb") as before:
            seen_below = [event for event in decoded_events(before.read()) if event[0] in _BELOW]
        self._forget_descriptor()
        self._file = file
        self._late.clear()  # unwritten lines are written again below
        for how, path, name in (*self._seen, *seen_below):
            self._write(how, path, name)
        self.greet()

    def begin_in_fork(self) -> None:
        """Continue in the same file, as a process of its own."""
        self._late.clear()  # the parent process writes these lines
        self.greet()

    def await_greetings(self, pids: Sequence[str]) -> None:
        """Give children that were just started time to report that they are watched."""
        until = time.monotonic() + _GREETING_S
        while pids and time.monotonic() < until:
            try:
                with open(self._file, "rb") as file:
                    events = decoded_events(file.read())
            except OSError:  # the file was removed, which perfci's parent process reports
                return
            if set(pids) <= {name for how, _, name in events if how == "watched"}:
                return
            time.sleep(0.02)

    def unwritten(self) -> str:
        """Return why an event could not be written, or an empty string."""
        return self._why_late if self._late else ""

    def _write(self, how: str, path: str, name: str) -> None:
        """Write an event at once. If that fails, write it with the next event.

        Raises nothing for a removed folder or a full disk, because the user's code that runs just
        now, such as an import, didn't cause it.
        """
        late, self._late = self._late, []
        lines = b"".join((*late, os.fsencode(_BETWEEN.join((how, path, name)) + _END)))
        try:
            lines = lines[os.write(self._opened(), lines) :]
        except OSError as error:
            self._why_late = error.strerror or str(error)
        if lines:
            self._late.append(lines)

    def _opened(self) -> int:
        """Return the file's descriptor. Open the file first if it isn't open any more.

        If the user's code closed the descriptor, its number may belong to another file by now. The
        inode shows that.
        """
        if self._descriptor >= 0:
            try:
                status = os.fstat(self._descriptor)
            except OSError:
                self._descriptor = -1
            else:
                if status.st_nlink and (status.st_dev, status.st_ino) == self._inode:
                    return self._descriptor
                self._descriptor = -1
        self._descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        status = os.fstat(self._descriptor)
        self._inode = status.st_dev, status.st_ino
        return self._descriptor

    def _forget_descriptor(self) -> None:
        """Close the file, unless the user's code did: its number may belong to another file."""
        if self._descriptor >= 0:
            try:
                status = os.fstat(self._descriptor)
                if (status.st_dev, status.st_ino) == self._inode:
                    os.close(self._descriptor)
            except OSError:  # the user closed it
                pass
            self._descriptor = -1


def decoded_events(text: bytes) -> list[list[str]]:
    """Return ``how``, ``path`` and ``name`` of each event in a file's content."""
    return [line.split(_BETWEEN) for line in os.fsdecode(text).split(_END) if line]


def begin_looks() -> bool:
    """Have the library record the files that this process looks at. Return whether it does."""
    return ask(_CONTROL + b"b", 0)


def keep_looks() -> None:
    """Have the library keep its lines in memory until ``are_looks_complete`` asks for them.

    In a fork of this process, the library writes each line at once again.
    """
    ask(_CONTROL + b"k", 0)


def are_looks_complete() -> bool:
    """Have the library write the lines that it kept. Return whether all its lines are written."""
    return ask(_CONTROL + b"c", 0)


def leave_out_listing() -> None:
    """Have the library not record the folder that this thread is about to list."""
    ask(_CONTROL + b"l", 0)
