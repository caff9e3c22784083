"""A starter: one side's fresh process that has imported a benchmark file, and forks its workers.

Most of a small benchmark's round would else be one more import of torch. A starter lives for one
sweep over a file's cases: address layout and allocator are drawn anew for every round, as they
are for a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from perfci.model.worker import WorkOrder
from perfci.session.conversation import Worker, WorkerEnded
from perfci.session.launch import ChildEnds, Executed, Launch
from perfci.session.leftovers import GRACE_S, WORKER_VARIABLE, end_all
from perfci.session.process import Pipes

_FORK_S = 10.0
_END_S = 10.0


class StarterProcess:
    """A living starter: forks once ``imported`` was called and found nothing against it."""

    def __init__(self, order: WorkOrder, launch: Launch, *, budget_end: float) -> None:
        self._socket, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._executed: Executed | None = None
        try:
            self._worker = Worker(
                replace(order, fork_socket=child.fileno()),
                Pipes(partial(self._execute, launch, order.root, child.fileno())),
                budget_end,
            )
        except BaseException:
            self._socket.close()
            raise
        finally:
            child.close()

    def imported(self, timeout_s: float) -> str:
        """Wait for its imports. Returns why it can't fork, or nothing. Raises BudgetEnded."""
        try:
            said = self._worker.expect("imported", timeout_s)
            return self._worker.field(said, "unfit", str)
        except WorkerEnded as ended:
            return ended.failure.message

    def move(self, cores: tuple[int, ...]) -> None:
        """Pin it, and so all that it forks, to ``cores``. It has one thread, or couldn't fork."""
        with contextlib.suppress(ProcessLookupError):  # gone already: ``alive`` says so
            os.sched_setaffinity(self._worker.pid, cores)

    def alive(self) -> bool:
        """Say whether it still lives: a benchmark can kill its parent."""
        return self._executed is not None and self._executed.wait(0) is None

    def fork(
        self,
        order: WorkOrder,
        environment: Mapping[str, str],
        *,
        budget_end: float,
        turns: int = -1,
    ) -> Worker:
        """Fork a worker that has ``environment`` besides the starter's; one lives at a time."""
        return Worker(order, Pipes(partial(self.forked, environment), turns=turns), budget_end)

    def forked(self, environment: Mapping[str, str], ends: ChildEnds) -> Forked:
        """Fork a process that has these ends of its pipes."""
        descriptors = [ends.output, ends.orders, ends.results]
        if ends.turns >= 0:
            descriptors.append(ends.turns)
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            socket.send_fds(self._socket, [json.dumps(dict(environment)).encode()], descriptors)
        pid = self._worker.field(self._worker.expect("forked", _FORK_S), "pid", int)
        return Forked(self._worker, pid, self._end)

    def close(self) -> None:
        """End the starter and whatever it started."""
        self._socket.close()
        self._worker.stage = "done"
        self._worker.close()

    def _execute(self, launch: Launch, root: str, kept: int, ends: ChildEnds) -> Executed:
        self._executed = Executed(launch, root, ends, (kept,))
        return self._executed

    def _end(self) -> int:
        """End all that carries the starter's token, but not the starter."""
        assert self._executed is not None  # noqa: S101 (it forked)
        return end_all(
            WORKER_VARIABLE,
            self._executed.token,
            spared=self._executed.pid,
            grace_s=GRACE_S,
        )


class Forked:
    """A forked worker. Its starter, whose child it is, reports how it ended."""

    def __init__(self, starter: Worker, pid: int, end_leftovers: Callable[[], int]) -> None:
        self._starter = starter
        self._pid = pid
        self._end_leftovers = end_leftovers
        self._code: int | None = None
        self._orphaned = False

    @property
    def pid(self) -> int:
        """The process id, which is its group's too."""
        return self._pid

    def wait(self, within_s: float) -> int | None:
        """Return the exit code (negative for a signal), or None while it lives on."""
        if self._code is None:
            try:
                message = self._starter.receive(time.monotonic() + within_s)
                self._code = self._starter.field(message, "code", int) if message else None
            except WorkerEnded:  # the starter was killed, or sends no messages: nobody knows
                self._code = -signal.SIGKILL
                self._orphaned = True
        return self._code

    def kill(self) -> None:
        """Kill the whole group; of a worker that has ended, its starter did: the id is free."""
        if self.wait(0) is None or self._orphaned:
            for kill in (os.kill, os.killpg):  # it may not have made its group as yet
                with contextlib.suppress(ProcessLookupError):
                    kill(self._pid, signal.SIGKILL)
            self.wait(_END_S)

    def end_leftovers(self) -> int:
        """Kill what left the group; return how many processes that were."""
        return self._end_leftovers()
