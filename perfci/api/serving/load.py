"""The requests of a load: made, read to their ends, and timed."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from time import sleep
from typing import TYPE_CHECKING, Any

from perfci.api.serving.events import MOST_TOKENS, StreamEvent, endless, no_tokens, token_times
from perfci.api.serving.server import require_running
from perfci.clock import perf_counter
from perfci.errors import Unusable
from perfci.metrics import Reading
from perfci.metrics.serving import Request, Requests

if TYPE_CHECKING:
    from asyncio import Runner
    from concurrent.futures import Future, ThreadPoolExecutor

_NO_STREAM = (str, bytes, list, tuple, dict)
"""Iterable types that aren't streams: they hold all their items from the start."""
_Stream = tuple[Request, list[StreamEvent]]
"""A request with the times of its stream's items. If they are events, the events follow."""


@dataclass(slots=True, eq=False)
class RequestLoad:
    """Makes a call's requests, reads each to its end, and keeps their times.

    ``clients`` clients make ``count`` requests in all. If there are ``arrivals``, each request is
    made at its arrival time.
    """

    opened: Callable[[], Any]
    count: int
    clients: int
    arrivals: tuple[float, ...] = ()
    _requests: Requests = field(default_factory=Requests)
    _unused: list[Any] = field(default_factory=list)
    _asynchronous: bool | None = None
    _threads: ThreadPoolExecutor | None = None
    _runner: Runner | None = None

    def __call__(self) -> None:
        """Make a call's requests."""
        began = perf_counter()
        streams = self._read_streams()
        took = perf_counter() - began
        require_running()
        requests = [
            replace(request, tokens=token_times(request.tokens, events))
            for request, events in streams
        ]
        self._requests.add(requests, took)

    def begin(self) -> None:
        """Forget the requests so far."""
        self._requests = Requests()

    def reading(self) -> Reading:
        """Return the metrics of the requests."""
        return self._requests.reading()

    def _read_streams(self) -> list[_Stream]:
        """Make a call's requests, and return their streams."""
        first = None
        if self._asynchronous is None:
            first = perf_counter()
            self._unused.append(self.opened())  # its type decides how streams are consumed
            self._asynchronous = isinstance(self._unused[0], (AsyncIterable, Coroutine))
        if self._asynchronous:
            return self._in_event_loop()
        if self.clients == 1 and not self.arrivals:
            due = (first, *[None] * (self.count - 1))
            return [self._read(moment) for moment in due]
        return self._in_threads()

    def _open(self) -> Any:
        """Return a stream. The first stream was opened before, to find out its type."""
        try:
            return self._unused.pop()
        except IndexError:
            return self.opened()

    def _read(self, due: float | None = None) -> _Stream:
        due = perf_counter() if due is None else due
        stream = self._open()
        if isinstance(stream, _NO_STREAM) or not isinstance(stream, Iterable):
            raise _no_stream(stream)
        times, events = array("d"), list[StreamEvent]()
        for item in stream:
            times.append(perf_counter())
            if isinstance(item, StreamEvent):
                events.append(item)
            if len(times) > MOST_TOKENS:
                raise endless()
        return _ended(due, times), events

    def _in_threads(self) -> list[_Stream]:
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.clients, "perfci-client")
        submit = self._threads.submit
        if self.arrivals:
            began = perf_counter()
            futures: list[Future[_Stream]] = []
            for after in self.arrivals:
                sleep(max(0.0, began + after - perf_counter()))
                futures.append(submit(self._read, began + after))
        else:  # a client makes its next request as soon as its last one has ended
            futures = [submit(self._read) for _ in range(self.count)]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        return [future.result() for future in futures]

    def _in_event_loop(self) -> list[_Stream]:
        import asyncio

        if (
            self._runner is None
        ):  # one for all calls, because a server's objects may be bound to its loop
            self._runner = asyncio.Runner()
        return self._runner.run(self._all_streams())

    async def _all_streams(self) -> list[_Stream]:
        import asyncio

        began = perf_counter()
        if self.arrivals:
            waiting = [self._awaited(began + after) for after in self.arrivals]
            return list(await asyncio.gather(*waiting))
        numbers = iter(range(self.count))
        clients = [self._client(numbers) for _ in range(self.clients)]
        return [stream for streams in await asyncio.gather(*clients) for stream in streams]

    async def _client(self, numbers: Iterator[int]) -> list[_Stream]:
        return [await self._awaited(None) for _ in numbers]

    async def _awaited(self, due: float | None) -> _Stream:
        import asyncio

        if due is None:
            due = perf_counter()
        else:
            await asyncio.sleep(max(0.0, due - perf_counter()))
        stream = self._open()
        if isinstance(stream, Coroutine):
            stream = await stream
        if not isinstance(stream, AsyncIterable):
            raise _no_stream(stream)
        times = array("d")
        async for _ in stream:
            times.append(perf_counter())
            if len(times) > MOST_TOKENS:
                raise endless()
        return _ended(due, times), []


def _ended(due: float, times: array[float]) -> Request:
    ended = perf_counter()
    if not times:
        raise no_tokens()
    return Request(due, times, ended)


def _no_stream(stream: object) -> Unusable:
    return Unusable(
        "not_a_stream",
        f"the stream is {repr(stream)[:80]}: return a generator or an async generator, which "
        "yields a token as soon as there is one",
    )
