"""The lines on a worker's two pipes, and the worker's end of them."""

from __future__ import annotations

import fcntl
import json
import os
from typing import Any

EXIT_PIPE_CLOSED = 70
_HIGH_DESCRIPTOR = 200


class Channel:
    """JSON lines: orders in, messages out. A pipe that the benchmark closed ends the worker."""

    def __init__(self, orders: int, results: int) -> None:
        self._orders = os.fdopen(_moved_high(orders), "rb")
        self._results = _moved_high(results)

    def receive(self) -> dict[str, Any] | None:
        """Return the next line, or None when the parent is gone."""
        try:
            line = self._orders.readline()
        except OSError:
            os._exit(EXIT_PIPE_CLOSED)
        return json.loads(line) if line else None

    def send(self, said: str, **fields: Any) -> None:
        """Send one message of kind ``said``."""
        data = memoryview(json.dumps({"say": said, **fields}).encode() + b"\n")
        try:
            while data:
                data = data[os.write(self._results, data) :]
        except OSError:
            os._exit(EXIT_PIPE_CLOSED)


def _moved_high(descriptor: int) -> int:
    """Move a pipe out of the way of code that counts descriptors, and close it on exec."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH_DESCRIPTOR)
    os.close(descriptor)
    return moved
