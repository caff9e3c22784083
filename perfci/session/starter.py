"""Processes that fork workers, as their parent holds them.

Most of a small benchmark's round would else be one more import of torch. A starter has imported
one side's benchmark file, an ancestor what both sides import of their libraries: the workers of
either are forked, and import what is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from perfci.machine.cgroup import remove_worker
from perfci.model.case import FileImports
from perfci.model.worker import WorkOrder
from perfci.session.conversation import Worker, WorkerEnded
from perfci.session.launch import ChildEnds, Executed, Launch, TreeDeleted, move
from perfci.session.leftovers import GRACE_S, WORKER_VARIABLE, end_all
from perfci.session.process import Pipes

_FORK_S = 10.0
_END_S = 10.0


@dataclass(frozen=True, slots=True)
class Preloaded:
    """What an ancestor imported: each module's file, what that did, and why it failed.

    ``compiler`` are the packages that came with torch's compiler alone; they are not ``modules``.
    """

    modules: Mapping[str, str]
    imports: FileImports
    failed: str
    compiler: tuple[str, ...] = ()


class StarterProcess:
    """A living starter or ancestor: forks once ``imported`` found nothing against it."""

    def __init__(self, order: WorkOrder, launch: Launch, *, budget_end: float) -> None:
        self._socket, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._executed: Executed | None = None
        self._codes: dict[int, int] = {}
        self._shared = order.preload is not None
        self._waits_for_forks = False
        self.preloaded: Preloaded | None = None
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
            self._waits_for_forks = True
            if self._shared:
                self.preloaded = Preloaded(
                    self._worker.field(said, "modules", dict[str, str]),
                    self._worker.field(said, "imports", FileImports),
                    self._worker.field(said, "failed", str),
                    self._worker.field(said, "compiler", tuple[str, ...]),
                )
            return self._worker.field(said, "unfit", str)
        except WorkerEnded as ended:
            return ended.failure.message

    def has_imported(self) -> bool:
        """Say whether ``imported`` would answer at once."""
        try:
            return self._worker.has_answered()
        except WorkerEnded:
            return True

    def move(self, cores: tuple[int, ...]) -> None:
        """Pin it, and so all that it forks, to ``cores``. It has one thread, or couldn't fork."""
        move(self._worker.pid, cores)

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
        """Fork a worker that has ``environment`` besides the starter's. Raises TreeDeleted."""
        if not os.path.isdir(order.root):  # noqa: PTH112 (as in ``Executed``)
            raise TreeDeleted(order.root)
        return Worker(order, Pipes(partial(self.forked, environment), turns=turns), budget_end)

    def forked(self, environment: Mapping[str, str], ends: ChildEnds) -> Forked:
        """Fork a process that has these ends of its pipes."""
        descriptors = [ends.output, ends.orders, ends.results]
        if ends.turns >= 0:
            descriptors.append(ends.turns)
        token = secrets.token_hex(8)
        text = json.dumps({**environment, WORKER_VARIABLE: token}).encode()
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            socket.send_fds(self._socket, [text], descriptors)
        said = None
        while said is None:
            said = self._next("forked", time.monotonic() + _FORK_S)
        return Forked(self, self._worker.field(said, "pid", int), token)

    def code_of(self, pid: int, within_s: float) -> int | None:
        """Return how a worker ended, or None while it lives on. Raises WorkerEnded."""
        deadline = time.monotonic() + within_s
        while pid not in self._codes:
            if self._next("ended", deadline) is None and time.monotonic() >= deadline:
                return self._codes.get(pid)
        return self._codes[pid]

    def close(self) -> None:
        """End the starter and whatever it started."""
        self._socket.close()
        if self._waits_for_forks:  # it leaves by itself; one that imports still wouldn't
            self._worker.stage = "done"
        self._worker.close()

    def _next(self, kind: str, deadline: float) -> dict[str, object] | None:
        """Return the next message of ``kind``; how workers ended is remembered on the way."""
        message = self._worker.receive(deadline)
        if message is None:
            if kind == "forked":
                raise self._worker.nonsense("it did not fork in time")
            return None
        if message.get("say") == "ended":
            pid = self._worker.field(message, "pid", int)
            self._codes[pid] = self._worker.field(message, "code", int)
            return message if kind == "ended" else None
        return message

    def _execute(self, launch: Launch, root: str, kept: int, ends: ChildEnds) -> Executed:
        self._executed = Executed(launch, root, ends, (kept,))
        return self._executed


class Forked:
    """A forked worker. Its starter, whose child it is, reports how it ended."""

    def __init__(self, starter: StarterProcess, pid: int, token: str) -> None:
        self._starter = starter
        self._pid = pid
        self._token = token
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
                self._code = self._starter.code_of(self._pid, within_s)
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
        left = end_all(WORKER_VARIABLE, self._token, grace_s=GRACE_S)
        remove_worker(self._token)
        return left
