"""Processes that a benchmark starts: tied to the worker, with their output read all the time."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import IO

_PARENT_DEATH = str(Path(__file__).with_name("parent_death.py"))
_MOST_LINES, _LONGEST_LINE = 200, 4000
"""Lines of output that are kept, and bytes of a line, at most."""
_SHOWN_LINES, _LONGEST_SHOWN = 10, 500
"""Lines of output in a message, and characters of a line, at most."""


def tied_command(words: Sequence[str]) -> list[str]:
    """Return the words that start a command, which the kernel kills when this process ends."""
    return [sys.executable, "-P", _PARENT_DEATH, str(os.getpid()), *words]


def how_it_ended(code: int) -> str:
    """Return how a process with this exit code ended, as the end of a sentence."""
    if code < 0:
        return f"was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"ended with exit code {code}"


def last_words(lines: Sequence[str]) -> str:
    """Return the last lines of a child's output, as the end of a message."""
    return "\n".join(line[:_LONGEST_SHOWN] for line in lines[-_SHOWN_LINES:]) or "it wrote nothing"


class ChildOutput:
    """Reads a child's output in a thread, so that the child never blocks. Keeps the last lines.

    With ``whose``, each line is also written to the log, after ``whose`` in brackets.
    """

    def __init__(self, source: IO[bytes], whose: str = "") -> None:
        self._source = source
        self._prefix = f"[{whose}] ".encode() if whose else b""
        self._last: deque[str] = deque(maxlen=_MOST_LINES)
        self._thread = Thread(target=self._run, name=f"perfci {whose}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def has_ended(self) -> bool:
        """Return whether all of the output was read."""
        return not self._thread.is_alive()

    def lines(self, within_s: float = 0.0) -> list[str]:
        """Wait for the output's end, for ``within_s`` at most. Return the last lines."""
        self._thread.join(within_s)
        return list(self._last)

    def _run(self) -> None:
        with self._source as source:
            while line := source.readline(_LONGEST_LINE):
                self._last.append(line.decode("utf-8", "replace").rstrip())
                if self._prefix:
                    with contextlib.suppress(OSError):  # the benchmark closed the worker's stderr
                        os.write(2, self._prefix + line.rstrip(b"\n") + b"\n")
