"""The lines on a worker's two pipes, and how a failure is reported on them.

Orders come in on one pipe. The first line is a ``WorkOrder``. The parent then sends ``{"do":
"block", "lead_ins": …, "calls": …, "collector": …, "turn": …}`` as often as it likes,
and ``{"do": "stop"}`` to end a block early. ``{"do": "finish"}`` is the last line. To a worker
whose instruments look inside a case, it sends ``{"do": "record", "instrument": …}`` instead.

Messages go out on the other pipe. Their kind is the field ``say``: ``stage``, ``ready``, ``block``,
``record``, ``output``, ``discovery`` or ``failed``. A process that forks workers sends
``imported``, ``forked`` and ``ended``.

The two workers of a pair also share a socket. A byte on it hands over the turn.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from perfci.api import PACKAGE
from perfci.errors import PerfciError, Unusable
from perfci.model.worker import WorkOrder
from perfci.plugins import BROKEN

if TYPE_CHECKING:
    from traceback import FrameSummary

EXIT_PIPE_CLOSED = 70
"""Exit code of a worker whose pipe or socket the benchmark closed."""
_HIGH_DESCRIPTOR = 200
"""Lowest number of a descriptor that is moved out of the way."""
_LONGEST_MESSAGE = 4000
_NO_NAME = re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'")
"""The beginning of an ImportError's text. The module's path follows."""


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message's line. ValueError for numbers that JSON can't hold (NaN, infinity)."""
    return json.dumps(message, allow_nan=False).encode() + b"\n"


def decode_order(line: bytes) -> WorkOrder:
    """Return the order that a line holds. ValueError or TypeError if it doesn't hold an order."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in json.loads(line).items()
    }
    return WorkOrder(**fields)


class WorkerDescriptors(NamedTuple):
    """A worker's descriptors. ``turns`` is the socket to the other side's worker, or -1."""

    orders: int
    results: int
    turns: int


class Channel:
    """The worker's ends of its pipes. If the benchmark has closed one, the worker exits.

    The worker reports each ``stage`` to the parent, which names it when the worker crashes.
    """

    def __init__(self, ends: WorkerDescriptors) -> None:
        self._orders = moved_high(ends.orders)
        self._unread = b""
        self._results = moved_high(ends.results)
        self._turns = ends.turns if ends.turns < 0 else moved_high(ends.turns)
        self._closed = False
        self.stage = "start"
        # A fork must not keep the pipes. If it outlives the worker, the parent would not notice the
        # worker's death. If it returns into perfci's code, it would send messages for the worker.
        os.register_at_fork(after_in_child=self._close)

    def receive(self) -> bytes:
        """Return the next line, which is empty if the parent is gone."""
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

    def orders(self) -> Iterator[dict[str, Any]]:
        """Yield the parent's orders up to ``finish``. Exit if the parent is gone."""
        while line := self.receive():
            order = json.loads(line)
            if order["do"] == "finish":
                return
            yield order
        os._exit(0)

    def enter(self, stage: str) -> None:
        """Report to the parent that ``stage`` begins."""
        self.stage = stage
        self.send("stage", stage=stage)

    def send(self, message: str, /, **fields: Any) -> None:
        """Send a message of the kind ``message``."""
        data = memoryview(encode({"say": message, **fields}))
        try:
            while data:
                data = data[os.write(self._results, data) :]
        except OSError:
            os._exit(EXIT_PIPE_CLOSED)

    def turn(self, block: int, *, first: bool) -> SocketTurn:
        """Return this worker's turn in a block. The worker begins the block if it is ``first``."""
        stopped = b"\n" in self._unread
        return SocketTurn(self._orders, self._turns, block, first=first, stopped=stopped)

    def _close(self) -> None:
        # A fork server's channel is closed in its worker already. In a fork of that worker, this
        # method is called again, and the descriptors' numbers may belong to other files.
        if self._closed:
            return
        self._closed = True
        for descriptor in (self._orders, self._results, self._turns):
            try:
                os.close(descriptor)
            except OSError:  # the benchmark closed it before it forked
                continue


class SocketTurn:
    """One worker's turn in a block of both sides.

    The byte that hands the turn over names the block. So a byte left over from a block that was
    ended early is ignored in a later block.
    """

    def __init__(self, orders: int, turns: int, block: int, *, first: bool, stopped: bool) -> None:
        self._stopped = stopped
        self._orders = orders
        self._turns = turns
        self._byte = bytes([block % 256])
        self._has_turn = first
        self._waiting = select.poll()
        self._waiting.register(turns, select.POLLIN)
        self._waiting.register(orders, select.POLLIN)

    def come(self) -> bool:
        """Wait for the turn. Return False if it will not come.

        That is so if the other side's worker or the parent is gone, or the parent has sent an
        order.
        """
        while not self._has_turn:
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
            self._has_turn = byte == self._byte
        return True

    def hand_over(self) -> None:
        """Hand the turn to the other side. If that worker is gone, the next ``come`` notices."""
        self._has_turn = False
        try:
            os.write(self._turns, self._byte)
        except ConnectionError:
            return
        except OSError:
            os._exit(EXIT_PIPE_CLOSED)


def moved_high(descriptor: int) -> int:
    """Return a copy of a descriptor with a high number, and close the original.

    The high number keeps out of the way of code that relies on low numbers. An exec closes it.
    """
    import fcntl
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = _HIGH_DESCRIPTOR if most < 0 else min(_HIGH_DESCRIPTOR, most // 2)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
    os.close(descriptor)
    return moved


def kind_of(error: BaseException) -> str:
    """Return a failure's kind: perfci's own name of it, or the exception's class."""
    if isinstance(error, PerfciError) and error.slug == BROKEN:
        return "broken_plugin"
    return error.kind if isinstance(error, Unusable) else type(error).__name__


def where_it_failed(error: BaseException, roots: Sequence[str]) -> str:
    """Return ``file:line`` of the innermost frame of user code, followed by the error's text.

    ``roots`` are the trees of the user's code. Paths are relative to them, and their frames are
    preferred to a library's. perfci's own errors already name the file and line.
    """
    text = _text(error)
    if isinstance(error, (PerfciError, Unusable)):
        for root in roots:
            text = text.replace(root + os.sep, "")
    elif isinstance(error, SyntaxError):
        text = f"{_relative(error.filename or '?', roots)}:{error.lineno}: {error.msg}"
    elif place := _place(error, roots):
        missing = _NO_NAME.match(text) if isinstance(error, ImportError) else None
        # without the path of the module, which is of a tree in the cache
        text = f"{place}: {missing[0] if missing else text}"
    # A lone surrogate (such as in a file's name) would fail wherever the text is written later.
    return text[:_LONGEST_MESSAGE].encode("utf-8", "backslashreplace").decode("utf-8")


def log(error: BaseException) -> None:
    """Write the error and its frames of user code to the log, after the benchmark's output."""
    with contextlib.suppress(Exception):  # the benchmark broke its own stderr: there is no log
        sys.stderr.write(user_traceback(error))
    flush()


def free_frames(error: BaseException) -> None:
    """Drop what the error's frames hold: a failure can't be reported without memory."""
    trace = error.__traceback__
    while trace := trace and trace.tb_next:  # the first frame is the caller's, which runs
        with contextlib.suppress(RuntimeError):
            trace.tb_frame.clear()


def user_traceback(error: BaseException) -> str:
    """Return a traceback with the frames of user code that led to ``error``. Empty without any."""
    import traceback

    frames = _user_frames(error)
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    return "".join(lines) if frames else ""


def flush() -> None:
    """Flush the standard streams, because ``os._exit`` doesn't."""
    for name in ("stdout", "stderr"):
        with contextlib.suppress(Exception):  # the benchmark broke its own stream
            getattr(sys, name).flush()


def _text(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception as second:  # noqa: BLE001 (a user's own __str__)
        return f"{type(error).__name__}, whose text can't be read ({type(second).__name__})"


def _place(error: BaseException, roots: Sequence[str]) -> str:
    frames = _user_frames(error)
    inside = tuple(root + os.sep for root in roots)
    in_trees = [frame for frame in frames if frame.filename.startswith(inside)]
    own = [frame for frame in in_trees if "/site-packages/" not in frame.filename]
    innermost = (own or frames)[-1:]
    return "".join(f"{_relative(frame.filename, roots)}:{frame.lineno}" for frame in innermost)


def _user_frames(error: BaseException) -> list[FrameSummary]:
    import traceback

    return [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((PACKAGE, "<frozen"))
    ]


def _relative(file: str, roots: Sequence[str]) -> str:
    for root in roots:
        if file.startswith(root + os.sep):
            return file.removeprefix(root + os.sep)
    return file
