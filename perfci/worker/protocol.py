"""The lines on a worker's two pipes, and the worker's end of them.

Orders in: a ``WorkOrder``, then ``{"do": "burst", "seconds": …, "least": …}`` as often as the
parent likes, then ``{"do": "finish"}``. Messages out, by their ``say``: ``stage``, ``ready``,
``burst``, ``output``, ``discovery``, ``failed``; a starter's are ``imported``, ``forked`` and
``ended``.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
from collections.abc import Mapping
from typing import Any

from perfci.model.worker import SavedModel, WorkOrder

EXIT_PIPE_CLOSED = 70
_HIGH_DESCRIPTOR = 200


def encode(message: Mapping[str, Any]) -> bytes:
    """Return the line for one message. ValueError for what JSON can't hold (NaN, infinity)."""
    return json.dumps(message, allow_nan=False).encode() + b"\n"


def decode_order(line: bytes) -> WorkOrder:
    """Return the order that a line holds. ValueError or TypeError where it holds none."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in json.loads(line).items()
    }
    saved = fields.pop("saved", ())
    models = tuple(SavedModel(**{**one, "modes": tuple(one["modes"])}) for one in saved)
    return WorkOrder(**fields, saved=models)


class Channel:
    """The worker's end. A pipe that the benchmark closed ends the worker."""

    def __init__(self, orders: int, results: int) -> None:
        self._orders = os.fdopen(_moved_high(orders), "rb")
        self._results = _moved_high(results)
        self._closed = False
        # A fork left behind would hold the pipe open, and the parent would not see the worker's
        # death; one that comes back into perfci's code would speak in the worker's place.
        os.register_at_fork(after_in_child=self._close)

    def receive(self) -> bytes:
        """Return the next line; it is empty when the parent is gone."""
        try:
            return self._orders.readline()
        except OSError:
            os._exit(EXIT_PIPE_CLOSED)

    def send(self, said: str, **fields: Any) -> None:
        """Send one message of kind ``said``."""
        data = memoryview(encode({"say": said, **fields}))
        try:
            while data:
                data = data[os.write(self._results, data) :]
        except OSError:
            os._exit(EXIT_PIPE_CLOSED)

    def _close(self) -> None:
        if self._closed:  # a starter's, in a fork of its worker: the numbers are others' by now
            return
        self._closed = True
        for descriptor in (self._orders.fileno(), self._results):
            try:
                os.close(descriptor)
            except OSError:  # the benchmark closed it before it forked
                continue


def _moved_high(descriptor: int) -> int:
    """Move a pipe out of the way of code that counts descriptors, and close it on exec."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = _HIGH_DESCRIPTOR if most < 0 else min(_HIGH_DESCRIPTOR, most // 2)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
    os.close(descriptor)
    return moved
