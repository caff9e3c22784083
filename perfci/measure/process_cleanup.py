"""How a session ends: signals are handled, and every process that a worker started is ended.

A process that double-forks leaves its group and its parent, but keeps its environment variables. So
it can be found by the ``PERFCI_WORKER`` of its worker and the ``PERFCI_SESSION`` of its session.

This file uses the standard library only, because it is also run by path, as the guardian.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

GRACE_S = 0.3
"""Time for processes that end by themselves, a little later than their worker."""
SESSION_VARIABLE = "PERFCI_SESSION"
WORKER_VARIABLE = "PERFCI_WORKER"
SERVER_VARIABLE = "PERFCI_SERVER"
"""Variable of all processes that ``perfci.server`` started, which end with their worker. Its value
is the worker's ``PERFCI_WORKER``."""


def carrying(variable: str, value: str) -> list[int]:
    """Return the ids of all living processes, except this one, that carry ``variable=value``."""
    needle = f"{variable}={value}".encode()
    result = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:  # another user's, or gone meanwhile
            continue
        if needle in environment.split(b"\0"):
            result.append(int(entry.name))
    return result


_END_S = 2.0
"""Longest time for which killing processes is repeated."""


def end_all(variable: str, value: str, *, spared: int = 0, grace_s: float = 0.0) -> int:
    """Kill every process that carries ``variable=value``. Return how many there were.

    ``spared`` is the id of a process that lives on. Processes that end by themselves within
    ``grace_s`` aren't counted: the resource tracker of a pool, for example, ends shortly after its
    worker. Processes of a server (``SERVER_VARIABLE``) aren't counted either. The kernel ends them
    with the worker, except those that the server put into a session of their own. Killing is
    repeated until no process is left, because a dying process may still fork.
    """
    ended: set[int] = set()
    grace_end = time.monotonic() + grace_s
    deadline = grace_end + _END_S
    while pids := [pid for pid in carrying(variable, value) if pid != spared]:
        servers = set(carrying(SERVER_VARIABLE, value))
        waits = time.monotonic() < grace_end
        doomed = servers.intersection(pids) if waits else set(pids)
        ended |= doomed - servers
        for pid in doomed:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    return len(ended)


_KEPT = ("PATH", "LD_LIBRARY_PATH")
"""Variables that the guardian inherits. None may be a secret: workers, of the same user, can read
the guardian's environment."""


@contextmanager
def guardian(token: str) -> Iterator[None]:
    """Run a tiny process that outlives this one, and then ends the workers, however it died."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, token],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={name: os.environ[name] for name in _KEPT if name in os.environ},
    )
    try:
        yield
    finally:
        process.communicate()  # closes its pipe, and waits for its end


def _watch(token: str) -> None:
    sys.stdin.buffer.read()  # returns when the parent closes the pipe, or dies
    end_all(SESSION_VARIABLE, token)


class InterruptHandler:
    """Handles Ctrl-C, or a cancelled CI job's SIGINT and then SIGTERM.

    The first signal ends the measuring. Then perfci tidies up and writes the report of what it has,
    which must not be lost. So the next signal is passed over. A first signal that comes after the
    measuring has ended is passed over, too. Another signal after that ends perfci.
    """

    def __init__(self) -> None:
        self._ignore_next = False
        self._has_raised = False
        self._first_was_ignored = False

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        """Handle a signal: raise KeyboardInterrupt, or pass over it."""
        if self._ignore_next:
            self._ignore_next = False
            self._first_was_ignored = not self._has_raised
            return
        self._ignore_next = self._has_raised = True
        raise KeyboardInterrupt

    def measuring_begins(self) -> None:
        """Let the next signal end the measuring. A first one that was passed over ends it now.

        If one has ended a measuring before, the next is passed over: the report comes first.
        """
        if self._first_was_ignored:
            self._first_was_ignored, self._has_raised = False, True
            raise KeyboardInterrupt
        self._ignore_next = self._has_raised

    def measuring_ended(self) -> None:
        """Pass over the next signal, because a report has to be written."""
        self._ignore_next = True


def measuring_begins() -> None:
    """Tell this process's handler that measuring begins.

    Raises KeyboardInterrupt if a signal came before, and was passed over.
    """
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, InterruptHandler):
        handler.measuring_begins()


def measuring_ended() -> None:
    """Tell this process's handler, if it is perfci's, that measuring has ended."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, InterruptHandler):
        handler.measuring_ended()


if __name__ == "__main__":
    _watch(*sys.argv[1:])
