"""A living worker: its process, the messages to and from it, and its end.

A ``Worker`` has a process at its other end (``pipes``), or in tests a simulation.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import perfci.worker
from perfci.errors import OutsideError, UnfitBenchmark
from perfci.measure.process_cleanup import GRACE_S, WORKER_VARIABLE, end_all
from perfci.model.case import Failure
from perfci.model.codec import CodecError, from_plain
from perfci.model.worker import WorkOrder

_BOOTSTRAP = str(Path(perfci.worker.__file__).with_name("bootstrap.py"))
T = TypeVar("T")
_LOG_TAIL = 2000
"""Characters of a worker's log that its failure shows."""
_LONGEST_WORD, _LONGEST_TEXT = 100, 4000
"""Characters that are kept of a worker's words (a stage, a kind), and of its messages."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How workers of one side are started.

    ``affinity`` are the cores that the worker is pinned to, empty if nothing is pinned. The command
    begins with ``launcher``, the user's own command, then comes Python. ``memory_limit`` is in
    bytes, 0 for no limit.
    """

    python: str
    environment: Mapping[str, str]
    affinity: tuple[int, ...] = ()
    memory_limit: int = 0
    launcher: tuple[str, ...] = ()


class TreeDeleted(UnfitBenchmark):
    """A benchmark deleted a side's tree, or files of it. No worker can start there any more."""

    @classmethod
    def at(cls, root: str) -> TreeDeleted:
        """Return the error for the tree in the folder ``root``."""
        return cls(
            "deleted-tree",
            f"a benchmark deleted its own tree, {root}, or files of it",
            "Let benchmarks delete only files that they made, below TMPDIR.",
        )


@dataclass(frozen=True, slots=True)
class ChildDescriptors:
    """A new worker's pipe ends: orders in, results out, what it prints, and turns (-1: none)."""

    orders: int
    results: int
    output: int
    turns: int = -1


class WorkerProcess(ABC):
    """A worker's process, however it was started. Its id is also the id of its process group."""

    def __init__(self, pid: int, token: str) -> None:
        self.pid = pid
        self.token = token

    @abstractmethod
    def wait(self, within_s: float) -> int | None:
        """Return the exit code (negative for a signal), or None if the process still lives."""

    @abstractmethod
    def kill(self) -> None:
        """Kill the whole group."""

    def end_leftovers(self) -> int:
        """Kill the worker's processes that left the group. Return how many there were."""
        return end_all(WORKER_VARIABLE, self.token, grace_s=GRACE_S)


class SpawnedWorker(WorkerProcess):
    """A fresh process. ``kept`` are descriptors that it inherits besides its pipes."""

    def __init__(
        self, launch: Launch, root: str, ends: ChildDescriptors, kept: tuple[int, ...] = ()
    ) -> None:
        token = secrets.token_hex(8)
        before = os.sched_getaffinity(0)
        try:
            if launch.affinity:  # inherited by the child from its very first instruction
                os.sched_setaffinity(0, launch.affinity)
            spawned = str(time.monotonic_ns())
            self._process = subprocess.Popen(
                [
                    *launch.launcher,
                    launch.python,
                    "-P",
                    _BOOTSTRAP,
                    *(str(ends.orders), str(ends.results), str(ends.turns), spawned),
                ],
                stdin=subprocess.DEVNULL,
                stdout=ends.output,
                stderr=ends.output,
                pass_fds=tuple(
                    descriptor
                    for descriptor in (ends.orders, ends.results, ends.turns, *kept)
                    if descriptor >= 0
                ),
                cwd=root,
                env={**launch.environment, WORKER_VARIABLE: token},
                start_new_session=True,
            )
        except OSError as error:
            if not os.path.isdir(root):  # noqa: PTH112 (a Path of a deleted folder is no use)
                raise TreeDeleted.at(root) from error
            raise OutsideError(
                "no-python",
                f"{launch.python} could not be started: {error.strerror}",
                "Name an interpreter that has torch with --base-python / --head-python.",
            ) from error
        finally:
            os.sched_setaffinity(0, before)
        super().__init__(self._process.pid, token)
        _make_first_victim(self.pid, launch.memory_limit)

    def wait(self, within_s: float) -> int | None:
        """Return the exit code (negative for a signal), or None if the process still lives.

        When it has ended, the rest of its group is killed before it is reaped: until then no other
        process can get its id.
        """
        if self._process.returncode is None:
            if not _has_ended(self._process.pid, within_s):
                return None
            self.kill()
        return self._process.returncode

    def kill(self) -> None:
        """Kill the whole group, and wait for the process, unless its id may be in use again."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _has_ended(pid: int, within_s: float) -> bool:
    """Return whether a child ends within ``within_s``, without reaping it."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:  # a parent that ignores SIGCHLD: the kernel reaps by itself
        return True
    try:
        return bool(select.select([process], [], [], within_s)[0])
    finally:
        os.close(process)


def _make_first_victim(pid: int, memory_limit: int) -> None:
    """Have the kernel, when out of memory, kill the worker and not the parent or the runner.

    Limit the worker's memory to ``memory_limit`` bytes, unless that is 0.
    """
    with contextlib.suppress(OSError):  # gone already: noticed at the next expect
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000", encoding="ascii")
    if memory_limit:
        with contextlib.suppress(ProcessLookupError):
            import resource

            resource.prlimit(pid, resource.RLIMIT_DATA, (memory_limit, memory_limit))


class WorkerEnded(Exception):
    """The worker can't go on; ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class BudgetEnded(Exception):
    """The session's time was over in the middle of a step."""


class Worker(ABC):
    """A living worker. Every way out goes through ``close``, which ends its whole group.

    ``took_s`` has the time of each stage that it passed, ``entered`` is when it entered its stage.
    ``grace`` is called when the budget ends, and returns until when the worker may go on.
    """

    pid: int

    def __init__(
        self, order: WorkOrder, budget_end: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.order = order
        self.stage = "start"
        self.entered = clock()
        self.took_s: dict[str, float] = {}
        self.grace: Callable[[], float] | None = None
        self._budget_end = budget_end
        self._clock = clock
        self._unread: deque[dict[str, Any]] = deque()
        self.send(asdict(order))

    @property
    @abstractmethod
    def log(self) -> str:
        """Everything that the worker printed so far."""

    @abstractmethod
    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message. A worker that is gone is noticed at the next ``receive``."""

    @abstractmethod
    def receive(self, deadline: float) -> dict[str, Any] | None:
        """Return the next message of any kind, or None at the deadline (of the worker's clock).

        A message that has arrived already is returned even if the deadline has passed. Raises
        WorkerEnded.
        """

    @abstractmethod
    def close(self) -> int:
        """End the worker's group and whatever left it. Return how many processes it left behind.

        A worker in the stage ``done`` may end by itself first.
        """

    def now(self) -> float:
        """Return the time of the clock that deadlines refer to."""
        return self._clock()

    def expect(
        self,
        text: str,
        within_s: float,
        *,
        since: float | None = None,
        overdue: Callable[[], float] | None = None,
    ) -> dict[str, Any]:
        """Return the next message of the kind ``text``. Each stage may take ``within_s``.

        The first stage's time counts from ``since``, or from now. When the time is over,
        ``overdue`` is called once, and returns how much more time to give. Raises WorkerEnded if
        the worker failed, died or took too long, and what ``grace`` raises.
        """
        deadline = (self._clock() if since is None else since) + within_s
        while True:
            message = (
                self._unread.popleft()
                if self._unread
                else self.receive(min(deadline, self._budget_end))
            )
            if message is None:
                if self._clock() >= self._budget_end:
                    if not self.grace:
                        raise BudgetEnded
                    self._budget_end = self.grace()
                    continue
                if overdue:
                    deadline = self._clock() + overdue()
                    overdue = None
                    continue
                raise self.ended("timeout", f"no answer within {within_s:.3g} s")
            kind = _text(message, "say", "")
            if kind == "stage":
                self.enter(self.field(message, "stage", str)[:_LONGEST_WORD])
                deadline = self._clock() + within_s
            elif kind == "failed":
                self.stage = _text(message, "stage", self.stage)[:_LONGEST_WORD]
                raise self.ended(_text(message, "kind", "protocol"), _text(message, "message", ""))
            elif kind == text:
                return message
            else:
                raise self.nonsense(f"unexpected message {kind[:_LONGEST_WORD]!r}")

    def enter(self, stage: str) -> None:
        """Note that the worker has passed its stage, and is in the next one."""
        self.took_s[self.stage] = self._clock() - self.entered
        self.stage, self.entered = stage, self._clock()

    def has_answered(self) -> bool:
        """Return, without waiting, whether ``expect`` would return at once. Raises WorkerEnded."""
        while message := self.receive(self._clock()):
            self._unread.append(message)
        return any(_text(unread, "say", "") != "stage" for unread in self._unread)

    def field(self, message: Mapping[str, Any], name: str, kind: type[T]) -> T:
        """Return a field of a worker's message. Raises WorkerEnded if it isn't a sound ``kind``.

        The benchmark shares the worker's process and so its pipe: it may have sent any message.
        """
        try:
            return from_plain(message[name], kind)
        except (CodecError, KeyError) as error:
            said_kind = _text(message, "say", "")
            what = f"no `{name}`" if isinstance(error, KeyError) else f"`{name}`: {error}"
            raise self.nonsense(f"the message {said_kind[:_LONGEST_WORD]!r} has {what}") from error

    def record(self, message: Mapping[str, Any], kind: type[T]) -> T:
        """Return a worker's whole message as a record. Raises WorkerEnded as ``field`` does."""
        fields = {name: value for name, value in message.items() if name != "say"}
        return self.field({**message, "record": fields}, "record", kind)

    def ended(self, kind: str, why: str) -> WorkerEnded:
        """Return the exception for a worker that can't go on."""
        return WorkerEnded(
            Failure(
                case=self.order.case,
                side=self.order.side,
                stage=self.stage,
                kind=kind[:_LONGEST_WORD],
                message=why[:_LONGEST_TEXT],
                log_tail=self.log[-_LOG_TAIL:],
            )
        )

    def nonsense(self, what: str) -> WorkerEnded:
        """Return the exception for a worker that sent what perfci's worker never sends."""
        return self.ended("protocol", what)


def _text(message: Mapping[str, Any], name: str, otherwise: str) -> str:
    value = message.get(name)
    return value if isinstance(value, str) else otherwise
