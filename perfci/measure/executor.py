"""The seam between deciding what is measured and measuring it.

An executor starts workers, fresh or forked by a starter, and has the clock. The tests have one
whose workers are simulated and take no time. Most of a small benchmark's round would else be one
more import of torch. A starter has imported one side's benchmark file, an ancestor what both sides
import of their libraries: the workers of either are forked, and import what is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import select
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from perfci.measure.ending import WORKER_VARIABLE, Guardian
from perfci.measure.machine.isolation import isolated
from perfci.measure.machine.quiet import divide
from perfci.measure.workers import (
    ChannelLost,
    ChildDescriptors,
    Launch,
    SpawnedWorker,
    TreeDeleted,
    Worker,
    WorkerEnded,
    WorkerProcess,
    move,
)
from perfci.model.case import FileImports
from perfci.model.worker import WorkOrder
from perfci.units import signal_name
from perfci.worker.protocol import EXIT_PIPE_CLOSED

# Reading what a worker prints, without end, keeping only its beginning and its end.
_CHUNK = 1 << 16
_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
"""Where a line may hold half of a surrogate pair, which could be written nowhere later on."""
_LARGEST_MESSAGE = 1 << 28
_END_WAIT_S = 10.0
_FORK_S = 10.0
_END_S = 10.0


class OutputDrain:
    """Empties one pipe in a thread, so that a printing benchmark never blocks or fills a disk.

    At most ``head`` + ``tail`` bytes are kept.
    """

    def __init__(self, descriptor: int, head: int = 1 << 16, tail: int = 1 << 16) -> None:
        self._descriptor = descriptor
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._dropped = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="perfci-drain", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return what was kept so far."""
        with self._lock:
            dropped = f"\n… {self._dropped:,} bytes left out …\n".encode() if self._dropped else b""
            return (bytes(self._head) + dropped + b"".join(self._tail)).decode(errors="replace")

    def close(self, wait_s: float) -> None:
        """Stop reading. A grandchild may hold the pipe open, so the end isn't waited for long."""
        self._thread.join(wait_s)
        if not self._thread.is_alive():
            os.close(self._descriptor)

    def _run(self) -> None:
        while chunk := os.read(self._descriptor, _CHUNK):
            with self._lock:
                self._keep(chunk)

    def _keep(self, chunk: bytes) -> None:
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if not chunk:
            return
        self._tail.append(chunk)
        self._tail_size += len(chunk)
        while self._tail_size - len(self._tail[0]) >= self._tail_limit:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self._dropped += gone


class PipeChannel:
    """A channel to a process, however ``start`` starts that."""

    def __init__(
        self,
        start: Callable[[ChildDescriptors], WorkerProcess],
        *,
        log_tail: int = 1 << 16,
        turns: int = -1,
    ) -> None:
        self._buffer = bytearray()
        self._oom_kills = _oom_kills()
        order_read, self._orders = os.pipe()
        self._results, result_write = os.pipe()
        output_read, output_write = os.pipe()
        try:
            self._process = start(ChildDescriptors(order_read, result_write, output_write, turns))
        except BaseException:
            for descriptor in (self._orders, self._results, output_read):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (order_read, result_write, output_write):
                os.close(descriptor)
        self._drain = OutputDrain(output_read, tail=log_tail)

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid

    @property
    def log(self) -> str:
        """Everything that the worker printed so far."""
        return self._drain.text()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one line. A worker that is gone is noticed at the next ``expect``."""
        data = memoryview(json.dumps(message).encode() + b"\n")
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._orders, data) :]

    def settle(self) -> None:
        """Let the drain catch up with a last line."""
        time.sleep(0.02)

    def close(self, *, done: bool) -> int:
        """End the worker's group and whatever left it; return how many processes it left behind."""
        os.close(self._orders)
        if done:
            self._process.wait(_END_WAIT_S)
        self._process.kill()
        left = self._process.end_leftovers()
        os.close(self._results)
        self._drain.close(wait_s=1.0)
        return left

    def receive(self, deadline: float) -> dict[str, Any] | None:
        """Return the next message of any kind, or None at the deadline (of the monotonic clock).

        What is there already is looked at once, even where the deadline has passed.
        """
        looked_late = False
        while b"\n" not in self._buffer:
            left = max(0.0, deadline - time.monotonic())
            if looked_late or not select.select([self._results], [], [], left)[0]:
                return None
            looked_late = not left
            chunk = os.read(self._results, 1 << 20)
            if not chunk:
                raise self._death()
            self._buffer += chunk
            if len(self._buffer) > _LARGEST_MESSAGE:
                raise ChannelLost("protocol", "a message without end")
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        try:
            message = json.loads(line)
            if _HALF_A_PAIR.search(line):
                whole = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
                message = json.loads(whole)
        except (ValueError, RecursionError):  # not JSON, or a million brackets of it
            message = None
        if not isinstance(message, dict):
            raise ChannelLost("protocol", f"not a message: {line[:80]!r}")
        return message

    def _death(self) -> ChannelLost:
        code = self._process.wait(_END_WAIT_S)  # a crash may take a busy machine that long
        if code is None:
            return ChannelLost("closed_pipe", "the worker closed perfci's pipe and lives on")
        if code == -signal.SIGKILL:
            if _oom_kills() > self._oom_kills:
                return ChannelLost("out_of_memory", "the kernel killed it for memory (SIGKILL)")
            return ChannelLost("SIGKILL", "killed by SIGKILL; for memory, most likely")
        if code < 0:
            name = signal_name(-code)
            return ChannelLost(name, f"crashed with {name}")
        if code == EXIT_PIPE_CLOSED:
            return ChannelLost("closed_pipe", "the benchmark closed perfci's file descriptors")
        return ChannelLost("exit", f"left with exit code {code} before it had measured")


def _oom_kills() -> int:
    for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
        name, _, count = line.partition(" ")
        if name == "oom_kill":
            return int(count)
    return 0


@dataclass(frozen=True, slots=True)
class AncestorImports:
    """The imports of an ancestor: each module's file, what that did, and why it failed.

    ``compiler`` are the packages that came with torch's compiler alone; they are not ``modules``.
    """

    modules: Mapping[str, str]
    imports: FileImports
    failed: str
    compiler: tuple[str, ...] = ()


class Starter:
    """A process that forks workers once ``imported`` has found nothing against it.

    A side's own has imported a benchmark file. ``preloaded`` is what an ancestor has imported.
    """

    def __init__(self, order: WorkOrder, launch: Launch, *, budget_end: float) -> None:
        self._socket, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._executed: SpawnedWorker | None = None
        self._codes: dict[int, int] = {}
        self._shared = order.preload is not None
        self._waits_for_forks = False
        self.preloaded: AncestorImports | None = None
        try:
            self._worker = Worker(
                replace(order, fork_socket=child.fileno()),
                PipeChannel(partial(self._execute, launch, order.root, child.fileno())),
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
            answer = self._worker.expect("imported", timeout_s)
            self._waits_for_forks = True
            if self._shared:
                self.preloaded = AncestorImports(
                    self._worker.field(answer, "modules", dict[str, str]),
                    self._worker.field(answer, "imports", FileImports),
                    self._worker.field(answer, "failed", str),
                    self._worker.field(answer, "compiler", tuple[str, ...]),
                )
            return self._worker.field(answer, "unfit", str)
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
        if not os.path.isdir(order.root):  # noqa: PTH112 (as in ``SpawnedWorker``)
            raise TreeDeleted(order.root)
        return Worker(
            order, PipeChannel(partial(self.forked, environment), turns=turns), budget_end
        )

    def forked(self, environment: Mapping[str, str], ends: ChildDescriptors) -> ForkedWorker:
        """Fork a process that has these ends of its pipes."""
        descriptors = [ends.output, ends.orders, ends.results]
        if ends.turns >= 0:
            descriptors.append(ends.turns)
        token = secrets.token_hex(8)
        text = json.dumps({**environment, WORKER_VARIABLE: token}).encode()
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            socket.send_fds(self._socket, [text], descriptors)
        answer = None
        while answer is None:
            answer = self._next("forked", time.monotonic() + _FORK_S)
        return ForkedWorker(self, self._worker.field(answer, "pid", int), token)

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

    def _execute(
        self, launch: Launch, root: str, kept: int, ends: ChildDescriptors
    ) -> SpawnedWorker:
        self._executed = SpawnedWorker(launch, root, ends, (kept,))
        return self._executed


class ForkedWorker(WorkerProcess):
    """A forked worker. Its starter, whose child it is, reports how it ended."""

    def __init__(self, starter: Starter, pid: int, token: str) -> None:
        super().__init__(pid, token)
        self._starter = starter
        self._code: int | None = None
        self._orphaned = False

    def wait(self, within_s: float) -> int | None:
        """Return the exit code (negative for a signal), or None while it lives on."""
        if self._code is None:
            try:
                self._code = self._starter.code_of(self.pid, within_s)
            except WorkerEnded:  # the starter was killed, or sends no messages: no one knows
                self._code = -signal.SIGKILL
                self._orphaned = True
        return self._code

    def kill(self) -> None:
        """Kill the whole group; of a worker that has ended, its starter did: the id is free."""
        if self.wait(0) is None or self._orphaned:
            for kill in (os.kill, os.killpg):  # it may not have made its group as yet
                with contextlib.suppress(ProcessLookupError):
                    kill(self.pid, signal.SIGKILL)
            self.wait(_END_S)


@dataclass(frozen=True, slots=True)
class OpenStarters:
    """The forking process of each side: a starter of its own, or the ``ancestor`` of that number.

    ``concurrent``: they started at the same time, and cold start is no use. ``fresh_states`` are
    torch's settings in a fresh process of each side, which an ancestor's workers have to have.
    ``meanwhile`` is called between the blocks of their rounds.
    """

    by_side: Mapping[str, Starter]
    concurrent: bool = False
    ancestor: int = 0
    fresh_states: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    meanwhile: Callable[[], None] = lambda: None

    def alive(self) -> bool:
        """Say whether all of them still live."""
        return all(starter.alive() for starter in self.by_side.values())


class Executor:
    """Starts workers, which are processes, and has the clock that budgets and timeouts are of."""

    def now(self) -> float:
        """Return the monotonic clock's time in s."""
        return time.monotonic()

    @contextmanager
    def guarded(self, token: str, inherited: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
        """Keep a guardian next to the session, and foreign code in a namespace where possible.

        All with ``token`` ends with this process. Yields what to put before the session's commands.
        Each worker has a part of perfci's cgroup, where that is perfci's alone.
        """
        divided = divide()
        with Guardian(token, divided.leaf, enabled=divided.enabled), isolated(inherited) as enter:
            yield enter

    def start(
        self,
        order: WorkOrder,
        launch: Launch,
        *,
        budget_end: float,
        log_tail: int = 1 << 16,
        turns: int = -1,
    ) -> Worker:
        """Start a fresh process; ``log_tail`` bytes of what it printed last are kept.

        ``turns`` is its end of the socket to the other side's worker, -1 for none.
        """
        way = partial(SpawnedWorker, launch, order.root)
        return Worker(order, PipeChannel(way, log_tail=log_tail, turns=turns), budget_end)

    def starter(self, order: WorkOrder, launch: Launch, *, budget_end: float) -> Starter:
        """Start a process that forks."""
        return Starter(order, launch, budget_end=budget_end)
