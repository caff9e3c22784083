"""The pipes to a worker's process: orders to it, results from it, and all that it prints."""

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
from pathlib import Path
from typing import Any

from perfci.measure.workers import ChildDescriptors, Worker, WorkerEnded, WorkerProcess
from perfci.model.worker import WorkOrder
from perfci.units import signal_name
from perfci.worker.protocol import EXIT_PIPE_CLOSED

_CHUNK = _LOG_BYTES = 1 << 16
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Matches an escaped surrogate. A text with only half of a pair couldn't be written anywhere."""
_LARGEST_MESSAGE = 1 << 28
"""Bytes of a message's line, about, beyond which the worker is given up."""
_END_WAIT_S = 10.0
"""Longest wait for a worker's end. On a busy machine a crash may take that long."""


class OutputDrain:
    """Empties one pipe in a thread, so that a printing benchmark never blocks or fills a disk.

    The last ``_LOG_BYTES`` are kept, or little more.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._tail: deque[bytes] = deque()
        self._size = self._dropped = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="perfci-drain", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return what was kept so far."""
        with self._lock:
            dropped = f"… {self._dropped:,} bytes left out …\n".encode() if self._dropped else b""
            return (dropped + b"".join(self._tail)).decode(errors="replace")

    def close(self, wait_s: float) -> None:
        """Stop reading, after ``wait_s`` at the latest: a grandchild may hold the pipe open."""
        self._thread.join(wait_s)
        if not self._thread.is_alive():
            os.close(self._descriptor)

    def _run(self) -> None:
        while chunk := os.read(self._descriptor, _CHUNK):
            with self._lock:
                self._tail.append(chunk)
                self._size += len(chunk)
                while self._size - len(self._tail[0]) >= _LOG_BYTES:
                    gone = len(self._tail.popleft())
                    self._size -= gone
                    self._dropped += gone


class PipeWorker(Worker):
    """A worker in the process that ``start`` starts, given its ends of the pipes.

    ``turns`` is the worker's end of the socket to the other side's worker, -1 for none.
    """

    def __init__(
        self,
        order: WorkOrder,
        start: Callable[[ChildDescriptors], WorkerProcess],
        budget_end: float,
        *,
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
        self._drain = OutputDrain(output_read)
        self.pid = self._process.pid
        super().__init__(order, budget_end)

    @property
    def log(self) -> str:
        """Everything that the worker printed so far."""
        return self._drain.text()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one line. A worker that is gone is noticed at the next ``receive``."""
        data = memoryview(json.dumps(message).encode() + b"\n")
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._orders, data) :]

    def ended(self, kind: str, why: str) -> WorkerEnded:
        """Return the exception, after the drain had time to read what the worker printed last."""
        time.sleep(0.02)
        return super().ended(kind, why)

    def close(self) -> int:
        """End the worker's group and whatever left it. Return how many processes it left behind."""
        os.close(self._orders)
        if self.stage == "done":
            self._process.wait(_END_WAIT_S)
        self._process.kill()
        left = self._process.end_leftovers()
        os.close(self._results)
        self._drain.close(wait_s=1.0)
        return left

    def receive(self, deadline: float) -> dict[str, Any] | None:
        """Return the next message of any kind, or None at the deadline (of the monotonic clock).

        After the deadline the pipe is still read once, so that a message which is there is found.
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
                raise self.nonsense("a message without end")
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        try:
            message = json.loads(line)
            if _SURROGATE.search(line):  # encoding replaces each half without its other half
                whole = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
                message = json.loads(whole)
        except (ValueError, RecursionError):  # not JSON, or a million brackets of it
            message = None
        if not isinstance(message, dict):
            raise self.nonsense(f"not a message: {line[:80]!r}")
        return message

    def _death(self) -> WorkerEnded:
        code = self._process.wait(_END_WAIT_S)
        if code is None:
            return self.ended("closed_pipe", "the worker closed perfci's pipe and lives on")
        if code == -signal.SIGKILL:
            if _oom_kills() > self._oom_kills:
                return self.ended("out_of_memory", "the kernel killed it for memory (SIGKILL)")
            return self.ended("SIGKILL", "killed by SIGKILL; the kernel counts no kill for memory")
        if code < 0:
            name = signal_name(-code)
            return self.ended(name, f"crashed with {name}")
        if code == EXIT_PIPE_CLOSED:
            return self.ended("closed_pipe", "the benchmark closed perfci's file descriptors")
        return self.ended("exit", f"left with exit code {code} before it had measured")


def _oom_kills() -> int:
    """Return how many processes the kernel has killed for memory since the machine started."""
    for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
        name, _, count = line.partition(" ")
        if name == "oom_kill":
            return int(count)
    return 0
