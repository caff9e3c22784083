"""The seam between deciding what is measured and measuring it: how workers start.

An ``Executor`` starts workers and has the clock. The tests have an executor whose workers are
simulated and take no time.

A worker is a fresh process, or a ``ForkServer`` forks it. Without forking, most of a small
benchmark's round would be another import of torch. A fork server has imported the libraries that
both sides import, or one side's benchmark file. A forked worker imports what is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from perfci.measure.machine.isolation import close_to_others
from perfci.measure.pipes import PipeWorker
from perfci.measure.process_cleanup import WORKER_VARIABLE, guardian
from perfci.measure.workers import (
    ChildDescriptors,
    Launch,
    SpawnedWorker,
    TreeDeleted,
    Worker,
    WorkerEnded,
    WorkerProcess,
)
from perfci.model.worker import FileImports, WorkOrder

_FORK_S = 10.0
"""Longest wait for a fork server to fork a worker."""
_END_S = 10.0
"""Longest wait for a killed worker to end."""


class Executor:
    """Starts workers, which are processes, and has the clock of budgets and timeouts."""

    def now(self) -> float:
        """Return the monotonic clock's time in s."""
        return time.monotonic()

    @contextmanager
    def guarded(self, token: str) -> Iterator[None]:
        """Run a guardian next to the session, and close this process to foreign code.

        When this process ends, the guardian ends every process that carries ``token``.
        """
        with guardian(token):
            close_to_others()
            yield

    def start(
        self, order: WorkOrder, launch: Launch, *, budget_end: float, turns: int = -1
    ) -> Worker:
        """Start a worker as a fresh process. ``turns`` is as in ``PipeWorker``."""
        start = partial(SpawnedWorker, launch, order.root)
        return PipeWorker(order, start, budget_end, turns=turns)

    def fork_server(self, order: WorkOrder, launch: Launch, *, budget_end: float) -> ForkServer:
        """Start a process that forks workers."""
        return ForkServer(order, launch, budget_end=budget_end)


@dataclass(frozen=True, slots=True)
class ServerImports:
    """A fork server's answer: why it can't fork, or "", and its imports if it is of both sides.

    These are each module's file, what importing did, and why it ``failed``. ``compiler``: the
    packages that only torch's compiler brought in. They are not in ``modules``. ``missing``: the
    packages that a library asked for in vain.
    """

    modules: Mapping[str, str] = field(default_factory=dict)
    imports: FileImports = field(default_factory=FileImports)
    failed: str = ""
    compiler: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unfit: str = ""


class ForkServer:
    """A process that forks workers, once ``imported`` has returned no reason against that.

    If it is one of both sides, ``preloaded`` has what it has imported. One of a side has imported a
    benchmark file.
    """

    def __init__(self, order: WorkOrder, launch: Launch, *, budget_end: float) -> None:
        self._socket, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._executed: SpawnedWorker | None = None
        self._codes: dict[int, int] = {}
        self._shared = order.preload is not None
        self._waits_for_forks = False
        self.preloaded: ServerImports | None = None
        try:
            self._worker = PipeWorker(
                replace(order, fork_socket=child.fileno()),
                partial(self._execute, launch, order.root, child.fileno()),
                budget_end,
            )
        except BaseException:
            self._socket.close()
            raise
        finally:
            child.close()

    def imported(self, timeout_s: float) -> str:
        """Wait for its imports. Return why it can't fork, or "". Raises BudgetEnded."""
        try:
            answer = self._worker.expect("imported", timeout_s)
            self._waits_for_forks = True
            imports = self._worker.record(answer, ServerImports)
            self.preloaded = imports if self._shared else None
            return imports.unfit
        except WorkerEnded as ended:
            return ended.failure.message

    def alive(self) -> bool:
        """Return whether the fork server still lives. A benchmark can kill its parent."""
        return self._executed is not None and self._executed.wait(0) is None

    def fork(
        self,
        order: WorkOrder,
        environment: Mapping[str, str],
        *,
        budget_end: float,
        turns: int = -1,
    ) -> Worker:
        """Fork a worker with ``environment`` added to the fork server's. Raises TreeDeleted."""
        if not os.path.isdir(order.root):  # noqa: PTH112 (as in ``SpawnedWorker``)
            raise TreeDeleted.at(order.root)
        return PipeWorker(order, partial(self.forked, environment), budget_end, turns=turns)

    def forked(self, environment: Mapping[str, str], ends: ChildDescriptors) -> ForkedWorker:
        """Fork a process that gets these ends of its pipes."""
        descriptors = [ends.output, ends.orders, ends.results]
        if ends.turns >= 0:
            descriptors.append(ends.turns)
        token = secrets.token_hex(8)
        text = json.dumps({**environment, WORKER_VARIABLE: token}).encode()
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            socket.send_fds(self._socket, [text], descriptors)
        deadline = time.monotonic() + _FORK_S
        while (answer := self._worker.receive(deadline)) and answer.get("say") == "ended":
            self._note_end(answer)
        if answer is None:
            raise self._worker.nonsense("it did not fork in time")
        pid = self._worker.field(answer, "pid", int)
        self._codes.pop(pid, None)  # an earlier worker's, whose pid the system has given again
        return ForkedWorker(self, pid, token)

    def code_of(self, pid: int, within_s: float) -> int | None:
        """Return a worker's exit code, or None while it lives on. Raises WorkerEnded."""
        deadline = time.monotonic() + within_s
        while pid not in self._codes and (message := self._worker.receive(deadline)):
            self._note_end(message)
        return self._codes.get(pid)

    def close(self) -> None:
        """End the fork server and whatever it started."""
        self._socket.close()
        if self._waits_for_forks:  # it ends with its socket, but not while it still imports
            self._worker.stage = "done"
        self._worker.close()

    def _note_end(self, message: Mapping[str, object]) -> None:
        """Remember how a worker ended. Raises WorkerEnded if the ``message`` doesn't say that."""
        pid = self._worker.field(message, "pid", int)
        self._codes[pid] = self._worker.field(message, "code", int)

    def _execute(
        self, launch: Launch, root: str, kept: int, ends: ChildDescriptors
    ) -> SpawnedWorker:
        self._executed = SpawnedWorker(launch, root, ends, (kept,))
        return self._executed


class ForkedWorker(WorkerProcess):
    """A forked worker. Its server, whose child it is, reports how it ended."""

    def __init__(self, server: ForkServer, pid: int, token: str) -> None:
        super().__init__(pid, token)
        self._server = server
        self._code: int | None = None
        self._orphaned = False

    def wait(self, within_s: float) -> int | None:
        """Return the exit code (negative for a signal), or None while it lives on."""
        if self._code is None:
            try:
                self._code = self._server.code_of(self.pid, within_s)
            except WorkerEnded:  # the fork server was killed, or sends no messages
                self._code = -signal.SIGKILL
                self._orphaned = True
        return self._code

    def kill(self) -> None:
        """Kill the worker's group.

        If the worker has ended, its server has killed the group, and the id may be in use again.
        """
        if self.wait(0) is None or self._orphaned:
            for kill in (os.kill, os.killpg):  # the worker may not have made its group yet
                with contextlib.suppress(ProcessLookupError):
                    kill(self.pid, signal.SIGKILL)
            self.wait(_END_S)


@dataclass(frozen=True, slots=True)
class OpenServers:
    """The fork server of each side: its own, or that of both sides, numbered ``server``."""

    by_side: Mapping[str, ForkServer]
    server: int = 0

    def close(self) -> None:
        """End these processes and all that they started."""
        for server in {id(server): server for server in self.by_side.values()}.values():
            server.close()

    def alive(self) -> bool:
        """Return whether all of these processes still live."""
        return all(server.alive() for server in self.by_side.values())
