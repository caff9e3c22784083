"""How a session ends: by a signal, and with every process that a worker started, wherever it hid.

A process that double-forks leaves its group and its parent, but not its environment: each
worker carries ``PERFCI_WORKER`` and each session ``PERFCI_SESSION``. Standard library only:
the guardian is this file, run by path.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

GRACE_S = 0.3
"""For what ends with its worker, but a little later."""
SESSION_VARIABLE = "PERFCI_SESSION"
WORKER_VARIABLE = "PERFCI_WORKER"
SERVER_VARIABLE = "PERFCI_SERVER"
"""Carried, with its worker's value, by all that ``perfci.server`` started: it ends with that."""


def carrying(variable: str, value: str) -> list[int]:
    """Return the ids of the living processes but this one that carry ``variable=value``."""
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


def end_all(variable: str, value: str, *, spared: int = 0, grace_s: float = 0.0) -> int:
    """Kill every process that carries ``variable=value``; return how many there were.

    ``spared`` is the id of one that lives on. What ends by itself within ``grace_s`` isn't counted:
    it is about to, as the resource tracker of a pool whose worker has ended. Nor is a server of
    its, which the kernel ends with the worker, but for what that put into a session of its own.
    Repeats until none is left, because a dying process may still fork.
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
"""No secret among them: the workers, of the same user, can read them."""


class Guardian:
    """A tiny process that outlives the parent: when that dies, however, it ends the workers.

    Then it takes back what ``machine.quiet.divide`` did, where that gave ``cgroup``.
    """

    def __init__(self, token: str, cgroup: str = "", *, enabled: bool = False) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, token, cgroup, "-memory" if enabled else ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None  # noqa: S101 (asked for above)
        self._process.stdin.close()
        self._process.wait()


def _watch(token: str, cgroup: str, controller: str) -> None:
    sys.stdin.buffer.read()
    end_all(SESSION_VARIABLE, token)
    if cgroup:
        undivide(Path(cgroup), controller)


def undivide(leaf: Path, controller: str) -> None:
    """Remove the cgroups of a session's workers, and its own ``leaf``, whose processes move up.

    ``controller`` is what the cgroup above is no longer to give to others. It can have processes
    only after that.
    """
    for path in leaf.parent.glob(f"{leaf.name}-*"):
        _remove(path)
    try:
        if controller:
            (leaf.parent / "cgroup.subtree_control").write_text(controller, encoding="ascii")
        for pid in (leaf / "cgroup.procs").read_text(encoding="ascii").split():
            with contextlib.suppress(ProcessLookupError):  # it has ended
                (leaf.parent / "cgroup.procs").write_text(pid, encoding="ascii")
    except OSError:  # it stays: who delegated the cgroup removes it
        return
    _remove(leaf)


def _remove(cgroup: Path) -> None:
    """Remove a cgroup; what was in it may take a moment to die."""
    deadline = time.monotonic() + _END_S
    while True:
        try:
            cgroup.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                return
            time.sleep(0.005)
        else:
            return


class InterruptHandler:
    """Handles Ctrl-C, or a cancelled CI job's SIGINT and then SIGTERM.

    The first signal ends the measuring. The next one finds perfci tidying up and writing its report
    of what is there, which must not be lost, and is passed over, as is a first one that comes when
    the measuring has ended. Then another one ends perfci.
    """

    def __init__(self) -> None:
        self._spare = False
        self._raised = False
        self._pending = False

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        """Handle a signal: raise KeyboardInterrupt, or pass over it."""
        if self._spare:
            self._spare = False
            self._pending = not self._raised
            return
        self._spare = self._raised = True
        raise KeyboardInterrupt

    def measuring_begins(self) -> None:
        """Let the next signal end it; one that was passed over meanwhile ends it now."""
        if self._pending:
            self._pending, self._raised = False, True
            raise KeyboardInterrupt
        self._spare = self._raised

    def measuring_ended(self) -> None:
        """Pass over the next signal: there is a report to be written."""
        self._spare = True


def measuring_begins() -> None:
    """Say so to this process's handler. Raises KeyboardInterrupt if a signal waits for it."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, InterruptHandler):
        handler.measuring_begins()


def measuring_ended() -> None:
    """Say so to this process's handler, where it is perfci's."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, InterruptHandler):
        handler.measuring_ended()


if __name__ == "__main__":
    _watch(*sys.argv[1:])
