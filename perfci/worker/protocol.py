"""The lines on a worker's two pipes, and the worker's end of them.

Orders in: a ``WorkOrder``, then ``{"do": "block", "bursts": …, "calls": …, "lead_in": …, "turn":
…}`` as often as the parent likes, and ``{"do": "stop"}``, which ends a block early; then ``{"do":
"finish"}``. Messages out, by their ``say``: ``stage``, ``ready``, ``block``, ``output``,
``discovery``, ``failed``; where instruments look inside ``{"do": "record", "instrument": …}`` is
answered by ``record``. A starter's are ``imported``, ``forked`` and ``ended``.

The workers of a pair have a socket to each other, too: a byte on it hands over the turn.
"""

from __future__ import annotations

import json
import os
import select
from collections.abc import Mapping
from typing import Any, NamedTuple

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


class Ends(NamedTuple):
    """A worker's descriptors; ``turns`` is the socket to the other side's, -1 where none is."""

    orders: int
    results: int
    turns: int


class Channel:
    """The worker's end. A pipe that the benchmark closed ends the worker."""

    def __init__(self, ends: Ends) -> None:
        self._orders = moved_high(ends.orders)
        self._unread = b""
        self._results = moved_high(ends.results)
        self._turns = ends.turns if ends.turns < 0 else moved_high(ends.turns)
        self._closed = False
        # A fork left behind would hold the pipe open, and the parent would not see the worker's
        # death; one that comes back into perfci's code would speak in the worker's place.
        os.register_at_fork(after_in_child=self._close)

    def receive(self) -> bytes:
        """Return the next line; it is empty when the parent is gone."""
        while b"\n" not in self._unread:
            try:
                chunk = os.read(self._orders, 1 << 16)
            except OSError:
                os._exit(EXIT_PIPE_CLOSED)
            if not chunk:
                return b""
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def send(self, said: str, **fields: Any) -> None:
        """Send one message of kind ``said``."""
        data = memoryview(encode({"say": said, **fields}))
        try:
            while data:
                data = data[os.write(self._results, data) :]
        except OSError:
            os._exit(EXIT_PIPE_CLOSED)

    def turn(self, block: int, *, first: bool) -> Turn:
        """Return this worker's turn in one block, in which it begins or not."""
        stopped = b"\n" in self._unread
        return Turn(self._orders, self._turns, block, first=first, stopped=stopped)

    def _close(self) -> None:
        if self._closed:  # a starter's, in a fork of its worker: the numbers are others' by now
            return
        self._closed = True
        for descriptor in (self._orders, self._results, self._turns):
            try:
                os.close(descriptor)
            except OSError:  # the benchmark closed it before it forked
                continue


class Turn:
    """One worker's turn in a block of both sides.

    The byte that hands it over names the block: what is left from a block that was ended early
    says nothing in a later one.
    """

    def __init__(self, orders: int, turns: int, block: int, *, first: bool, stopped: bool) -> None:
        self._stopped = stopped
        self._orders = orders
        self._turns = turns
        self._byte = bytes([block % 256])
        self._mine = first
        self._waiting = select.poll()
        self._waiting.register(turns, select.POLLIN)
        self._waiting.register(orders, select.POLLIN)

    def come(self) -> bool:
        """Wait for the turn. False where it will not come.

        The other side's worker is gone, or the parent is, or the parent has an order.
        """
        while not self._mine:
            if self._stopped or any(
                descriptor == self._orders for descriptor, _ in self._waiting.poll()
            ):
                return False
            try:
                byte = os.read(self._turns, 1)
            except ConnectionError:
                return False
            except OSError:
                os._exit(EXIT_PIPE_CLOSED)
            if not byte:
                return False
            self._mine = byte == self._byte
        return True

    def hand_over(self) -> None:
        """Let the other side have it; one that is gone is noticed when its turn should come."""
        self._mine = False
        try:
            os.write(self._turns, self._byte)
        except ConnectionError:
            return
        except OSError:
            os._exit(EXIT_PIPE_CLOSED)


class Alone:
    """The turn of a worker that has no other beside it."""

    def come(self) -> bool:
        """Say that it is there."""
        return True

    def hand_over(self) -> None:
        """Keep it."""


def moved_high(descriptor: int) -> int:
    """Move a pipe out of the way of code that counts descriptors, and close it on exec."""
    import fcntl
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = _HIGH_DESCRIPTOR if most < 0 else min(_HIGH_DESCRIPTOR, most // 2)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
    os.close(descriptor)
    return moved
