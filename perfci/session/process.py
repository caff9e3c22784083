"""One worker seen from the parent: spoken to, and ended with all that it started."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from perfci.model.case import Failure
from perfci.model.codec import CodecError, from_plain
from perfci.model.worker import WorkOrder
from perfci.session.launch import ChildEnds, Started
from perfci.units import counted
from perfci.worker.protocol import EXIT_PIPE_CLOSED

# Reading what a worker prints, without end, keeping only its beginning and its end.

_CHUNK = 1 << 16


class Drain:
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


# Pure: what ``-X importtime`` printed, as each package's time.

_LINE = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)$")


def import_times(log: str) -> dict[str, float]:
    """Return each module's own import time in s."""
    times: dict[str, float] = {}
    for line in log.splitlines():
        if match := _LINE.match(line):
            module = match.group(2)
            times[module] = times.get(module, 0.0) + int(match.group(1)) / 1e6
    return times


def without_import_times(log: str) -> str:
    """Return what the benchmark itself printed."""
    lines = log.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("import time:"))


T = TypeVar("T")

_LOG_TAIL = 2000
_LONGEST_WORD, _LONGEST_TEXT = 100, 4000
_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
"""Where a line may hold half of a surrogate pair, which could be written nowhere later on."""
_LARGEST_MESSAGE = 1 << 28
_END_WAIT_S = 10.0


class WorkerEnded(Exception):
    """The worker can't go on; ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class BudgetEnded(Exception):
    """The session's time was over in the middle of a step."""


class WorkerProcess:
    """A living worker. Every way out goes through ``close``, which ends its whole group."""

    def __init__(
        self,
        order: WorkOrder,
        start: Callable[[ChildEnds], Started],
        budget_end: float,
        *,
        log_tail: int = 1 << 16,
    ) -> None:
        self.order = order
        self.stage = "start"
        self._budget_end = budget_end
        self._buffer = bytearray()
        self._oom_kills = _oom_kills()
        order_read, self._orders = os.pipe()
        self._results, result_write = os.pipe()
        output_read, output_write = os.pipe()
        try:
            self._process = start(ChildEnds(order_read, result_write, output_write))
        except BaseException:
            for descriptor in (self._orders, self._results, output_read):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (order_read, result_write, output_write):
                os.close(descriptor)
        self._drain = Drain(output_read, tail=log_tail)
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
            message = self.receive(min(deadline, self._budget_end))
            if message is None:
                if time.monotonic() >= self._budget_end:
                    raise BudgetEnded
                raise WorkerEnded(self._failure("timeout", f"no answer within {within_s:g} s"))
            kind = _text(message, "say", "")
            if kind == "stage":
                self.stage = self.field(message, "stage", str)[:_LONGEST_WORD]
                deadline = time.monotonic() + within_s
            elif kind == "failed":
                self.stage = _text(message, "stage", self.stage)[:_LONGEST_WORD]
                raise WorkerEnded(
                    self._failure(_text(message, "kind", "protocol"), _text(message, "message", ""))
                )
            elif kind == said:
                return message
            else:
                raise self.nonsense(f"unexpected message {kind[:_LONGEST_WORD]!r}")

    def field(self, message: Mapping[str, Any], name: str, kind: type[T]) -> T:
        """Return a field of what the worker said. WorkerEnded where it isn't a sound ``kind``.

        The benchmark shares the worker's process, and so its pipe: any message may be its own.
        """
        try:
            return from_plain(message[name], kind)
        except (CodecError, KeyError) as error:
            said = _text(message, "say", "")
            what = f"no `{name}`" if isinstance(error, KeyError) else f"`{name}`: {error}"
            raise self.nonsense(f"the message {said[:_LONGEST_WORD]!r} has {what}") from error

    def nonsense(self, what: str) -> WorkerEnded:
        """Return the end of a worker that said what no worker says."""
        return WorkerEnded(self._failure("protocol", what))

    def close(self) -> int:
        """End the worker's group and whatever left it; return how many processes it left behind."""
        os.close(self._orders)
        if self.stage == "done":
            self._process.wait(_END_WAIT_S)
        self._process.kill()
        left = self._process.end_leftovers()
        os.close(self._results)
        self._drain.close(wait_s=1.0)
        return left

    def left_behind(self, count: int) -> Failure:
        """Return the failure of a worker whose benchmark left processes running."""
        return self._failure(
            "left_processes",
            f"the benchmark left {counted(count, 'process')} running, ended by perfci",
        )

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
                raise WorkerEnded(self._death())
            self._buffer += chunk
            if len(self._buffer) > _LARGEST_MESSAGE:
                raise WorkerEnded(self._failure("protocol", "a message without end"))
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
            raise self.nonsense(f"not a message: {line[:80]!r}")
        return message

    def _death(self) -> Failure:
        code = self._process.wait(_END_WAIT_S)  # a crash may take a busy machine that long
        if code is None:
            return self._failure("closed_pipe", "the worker closed perfci's pipe and lives on")
        if code == -signal.SIGKILL:
            if _oom_kills() > self._oom_kills:
                return self._failure("out_of_memory", "the kernel killed it for memory (SIGKILL)")
            return self._failure("SIGKILL", "killed by SIGKILL; for memory, most likely")
        if code < 0:
            name = _signal_name(-code)
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
            kind=kind[:_LONGEST_WORD],
            message=message[:_LONGEST_TEXT],
            log_tail=without_import_times(self.log)[-_LOG_TAIL:],
        )


def _text(message: Mapping[str, Any], name: str, otherwise: str) -> str:
    value = message.get(name)
    return value if isinstance(value, str) else otherwise


def _signal_name(number: int) -> str:
    """Return a signal's name; of the real-time ones only the first and the last have their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def _oom_kills() -> int:
    for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
        name, _, count = line.partition(" ")
        if name == "oom_kill":
            return int(count)
    return 0
