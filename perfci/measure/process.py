"""One worker seen from the parent: started, spoken to, and ended with all that it started."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import perfci.worker
from perfci.errors import OutsideError
from perfci.measure.drain import Drain
from perfci.measure.import_times import without_import_times
from perfci.measure.leftovers import WORKER_VARIABLE, end_all
from perfci.record.case import Failure
from perfci.record.worker import WorkOrder
from perfci.worker.protocol import EXIT_PIPE_CLOSED

_BOOTSTRAP = str(Path(perfci.worker.__file__).with_name("bootstrap.py"))
_LOG_TAIL = 2000
_LARGEST_MESSAGE = 1 << 28
_END_WAIT_S = 10.0


class WorkerEnded(Exception):
    """The worker can't go on; ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class BudgetEnded(Exception):
    """The session's time was over in the middle of a step."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How workers of one side are started. ``affinity`` is empty where nothing is pinned."""

    python: str
    environment: Mapping[str, str]
    affinity: tuple[int, ...] = ()
    memory_limit: int = 0
    import_times: bool = False


class WorkerProcess:
    """A living worker. Every way out goes through ``close``, which ends its whole group."""

    def __init__(self, order: WorkOrder, launch: Launch, token: str, budget_end: float) -> None:
        self.order = order
        self.stage = "start"
        self._budget_end = budget_end
        self._token = token
        self._buffer = bytearray()
        order_read, order_write = os.pipe()
        result_read, result_write = os.pipe()
        output_read, output_write = os.pipe()
        environment = {**launch.environment, WORKER_VARIABLE: token}
        options = ["-P", *(["-X", "importtime"] if launch.import_times else [])]
        before = os.sched_getaffinity(0)
        oom_kills = _oom_kills()
        try:
            if launch.affinity:  # inherited by the child from its very first instruction
                os.sched_setaffinity(0, launch.affinity)
            spawned = time.monotonic_ns()
            self._process = subprocess.Popen(
                [
                    launch.python,
                    *options,
                    _BOOTSTRAP,
                    *map(str, (order_read, result_write, spawned)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output_write,
                stderr=output_write,
                pass_fds=(order_read, result_write),
                cwd=order.root,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            for descriptor in (order_write, result_read, output_read):
                os.close(descriptor)
            raise OutsideError(
                "no-python",
                f"{launch.python} could not be started: {error.strerror}",
                "Name an interpreter that has torch with --base-python / --head-python.",
            ) from error
        finally:
            os.sched_setaffinity(0, before)
            for descriptor in (order_read, result_write, output_write):
                os.close(descriptor)
        self._oom_kills = oom_kills
        self._orders = order_write
        self._results = result_read
        self._drain = Drain(output_read, tail=1 << (22 if launch.import_times else 16))
        _make_first_victim(self._process.pid, launch.memory_limit)
        self.send(asdict(order))

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid

    @property
    def log(self) -> str:
        """What the worker printed so far."""
        return self._drain.text()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one line. A worker that is gone is noticed at the next ``expect``."""
        data = memoryview(json.dumps(message).encode() + b"\n")
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._orders, data) :]

    def expect(self, said: str, within_s: float) -> dict[str, Any]:
        """Return the next message of kind ``said``, each stage taking at most ``within_s``.

        Raises WorkerEnded when the worker failed, died or took too long, and BudgetEnded.
        """
        deadline = time.monotonic() + within_s
        while True:
            message = self._next(min(deadline, self._budget_end))
            if message is None:
                if time.monotonic() >= self._budget_end:
                    raise BudgetEnded
                raise WorkerEnded(self._failure("timeout", f"no answer within {within_s:g} s"))
            kind = message.get("say")
            if kind == "stage":
                self.stage = str(message["stage"])
                deadline = time.monotonic() + within_s
            elif kind == "failed":
                self.stage = str(message.get("stage", self.stage))
                raise WorkerEnded(
                    self._failure(str(message.get("kind", "")), str(message.get("message", "")))
                )
            elif kind == said:
                return message
            else:
                raise WorkerEnded(self._failure("protocol", f"unexpected message {kind!r}"))

    def close(self) -> int:
        """End the worker's group and whatever left it; return how many processes it left behind."""
        os.close(self._orders)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_WAIT_S if self.stage == "done" else 0)
        self._kill_group()
        self._process.wait()
        left = end_all(WORKER_VARIABLE, self._token)
        os.close(self._results)
        self._drain.close(wait_s=1.0)
        return left

    def left_behind(self, count: int) -> Failure:
        """Return the failure of a worker whose benchmark left processes running."""
        return self._failure(
            "left_processes", f"the benchmark left {count} process(es) running; they were ended"
        )

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _next(self, deadline: float) -> dict[str, Any] | None:
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._results], [], [], left)[0]:
                return None
            chunk = os.read(self._results, 1 << 20)
            if not chunk:
                raise WorkerEnded(self._death())
            self._buffer += chunk
            if len(self._buffer) > _LARGEST_MESSAGE:
                raise WorkerEnded(self._failure("protocol", "a message without end"))
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise WorkerEnded(self._failure("protocol", f"not a message: {line[:80]!r}"))
        return message

    def _death(self) -> Failure:
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return self._failure("closed_pipe", "the worker closed perfci's pipe and lives on")
        if code == -signal.SIGKILL:
            if _oom_kills() > self._oom_kills:
                return self._failure("out_of_memory", "the kernel killed it for memory (SIGKILL)")
            return self._failure("SIGKILL", "killed by SIGKILL; for memory, most likely")
        if code < 0:
            name = signal.Signals(-code).name
            return self._failure(name, f"crashed with {name}")
        if code == EXIT_PIPE_CLOSED:
            return self._failure("closed_pipe", "the benchmark closed perfci's file descriptors")
        return self._failure("exit", f"left with exit code {code} before it had measured")

    def _failure(self, kind: str, message: str) -> Failure:
        time.sleep(0.02)  # lets the drain catch up with a last line
        return Failure(
            case=self.order.case,
            side=self.order.side,
            stage=self.stage,
            kind=kind,
            message=message,
            log_tail=without_import_times(self.log)[-_LOG_TAIL:],
        )


def _make_first_victim(pid: int, memory_limit: int) -> None:
    """Let the kernel, when out of memory, take the worker and not the parent or the runner."""
    with contextlib.suppress(OSError):  # gone already: noticed at the next expect
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000", encoding="ascii")
    if memory_limit:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (memory_limit, memory_limit))


def _oom_kills() -> int:
    for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
        name, _, count = line.partition(" ")
        if name == "oom_kill":
            return int(count)
    return 0
