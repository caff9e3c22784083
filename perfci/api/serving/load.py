"""``perfci.generate``: a load's requests for tokens, made, read to their ends, and timed."""

from __future__ import annotations

import random
from array import array
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from time import sleep
from typing import TYPE_CHECKING, Any

from perfci.api import is_count, is_positive, require
from perfci.api.serving.endpoint import Endpoint
from perfci.api.serving.events import MOST_TOKENS, StreamEvent, endless, no_tokens, token_times
from perfci.api.serving.server import is_url, require_running
from perfci.clock import perf_counter
from perfci.collector import Work
from perfci.errors import Unusable
from perfci.metrics import Reading
from perfci.metrics.serving import Request, Requests

if TYPE_CHECKING:
    from asyncio import Runner
    from concurrent.futures import Future, ThreadPoolExecutor

_OPEN_LOOP_REQUESTS = 16
_NO_STREAM = (str, bytes, list, tuple, dict)
"""Iterable types that aren't streams: they hold all their items from the start."""
_Stream = tuple[Request, list[StreamEvent]]
"""A request with the times of its stream's items. If they are events, the events follow."""


def generate(
    stream: Callable[[], Any] | str,
    *,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    concurrency: int = 1,
    requests: int | None = None,
    rate: float | None = None,
    seed: int = 0,
) -> Work:
    """Return the work of a load's requests for tokens, each consumed to its end.

    ``stream()`` returns a generator or an async generator of tokens. A URL streams server-sent
    events; ``body`` is sent to it as JSON by POST.

    Closed loop: ``concurrency`` clients make ``requests`` in all (default: one each). Open loop:
    ``requests`` (16) arrive at ``rate`` a second, at random times of ``seed``, the same in every
    call. A URL's tokens are counted by the ``usage`` that it reports, or else by its events.
    """
    _require_load(stream, concurrency, requests, rate)
    opened = stream if callable(stream) else Endpoint(stream, body, headers or {})
    closed = rate is None
    count = requests or (concurrency if closed else _OPEN_LOOP_REQUESTS)
    load = RequestLoad(
        opened,
        count,
        clients=concurrency if closed else count,
        arrivals=() if rate is None else arrivals(rate, count, seed),
    )
    return Work(load, items=float(count), observer=load)


def arrivals(rate: float, count: int, seed: int) -> tuple[float, ...]:
    """Return the arrival times of ``count`` requests, in s: the first of a Poisson process."""
    draw = random.Random(seed)  # noqa: S311 (a load, no secret)
    return tuple(accumulate(draw.expovariate(rate) for _ in range(count)))


def _require_load(stream: Any, concurrency: int, requests: int | None, rate: float | None) -> None:
    advice = (
        'Write perfci.generate(stream) or perfci.generate("http://127.0.0.1:8000/generate", '
        'body={"prompt": "…"}, concurrency=4): docs/serving.md.'
    )
    for right, wrong in (
        (
            is_url(stream) if isinstance(stream, str) else callable(stream),
            f"the stream is {stream!r}; give a function that returns a generator or an http:// URL",
        ),
        (is_count(concurrency), f"`concurrency` is {concurrency!r}; give 1 or more"),
        (requests is None or is_count(requests), f"`requests` is {requests!r}; give 1 or more"),
        (rate is None or is_positive(rate), f"`rate` is {rate!r}; give more than 0 a second"),
        (
            rate is None or concurrency == 1,
            "give `rate` (an open loop) or `concurrency` (a closed one), not both",
        ),
        (
            rate is not None or requests is None or requests >= concurrency,
            f"`requests` is {requests!r}, for {concurrency!r} clients; give one for each at least",
        ),
    ):
        require(right, "generate", wrong, advice)


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
            import asyncio

            # one for all calls, because a server's objects may be bound to its loop
            self._runner = self._runner or asyncio.Runner()
            return self._runner.run(self._all_streams())
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
