"""Making a load's requests: in order, by threads, or in an event loop; none outlives its call."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from time import sleep
from typing import TYPE_CHECKING, Any

from perfci.clock import perf_counter
from perfci.errors import Unusable
from perfci.metrics.serving import Request

if TYPE_CHECKING:
    from asyncio import Runner
    from concurrent.futures import Future, ThreadPoolExecutor

_MOST_TOKENS = 1_000_000
"""Of one request. More are a stream that never ends, which would take all memory first."""
_NO_STREAM = (str, bytes, list, tuple, dict)
"""What can be gone through, but is there all at once."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The requests of a call: ``clients`` make ``count``, each at its arrival where it has one."""

    count: int
    clients: int
    arrivals: tuple[float, ...] = ()


@dataclass(slots=True)
class Loop:
    """Opens streams by a schedule and consumes each to its end."""

    opened: Callable[[], Any]
    schedule: Schedule
    _unused: list[Any] = field(default_factory=list)
    _asynchronous: bool | None = None
    _threads: ThreadPoolExecutor | None = None
    _runner: Runner | None = None

    def run(self) -> list[Request]:
        """Make a call's requests; all have ended when it returns. Unusable for one that fails."""
        first = None
        if self._asynchronous is None:
            first = perf_counter()
            self._unused.append(self.opened())  # what it gives decides how it is gone through
            self._asynchronous = _is_asynchronous(self._unused[0])
        if self._asynchronous:
            return self._in_event_loop()
        if self.schedule.clients == 1 and not self.schedule.arrivals:
            due = (first, *[None] * (self.schedule.count - 1))
            return [self._request(one) for one in due]
        return self._in_threads()

    def _open(self) -> Any:
        """Return a stream; the first was opened already."""
        try:
            return self._unused.pop()
        except IndexError:
            return self.opened()

    def _request(self, due: float | None = None) -> Request:
        due = perf_counter() if due is None else due
        stream = self._open()
        _check_stream(stream)
        tokens = array("d")
        for _ in stream:
            tokens.append(perf_counter())
            if len(tokens) > _MOST_TOKENS:
                raise _endless()
        return _ended(due, tokens)

    def _in_threads(self) -> list[Request]:
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.schedule.clients, "perfci-client")
        submit = self._threads.submit
        if self.schedule.arrivals:
            began = perf_counter()
            futures: list[Future[Request]] = []
            for after in self.schedule.arrivals:
                sleep(max(0.0, began + after - perf_counter()))
                futures.append(submit(self._request, began + after))
        else:  # a client takes the next request as soon as it has the last token of one
            futures = [submit(self._request) for _ in range(self.schedule.count)]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for one in done:
            one.result()
        return [one.result() for one in futures]

    def _in_event_loop(self) -> list[Request]:
        import asyncio

        if self._runner is None:  # one for all calls: what serves may be bound to its loop
            self._runner = asyncio.Runner()
        return self._runner.run(self._all_requests())

    async def _all_requests(self) -> list[Request]:
        import asyncio

        schedule = self.schedule
        began = perf_counter()
        if schedule.arrivals:
            waiting = [self._awaited(began + after) for after in schedule.arrivals]
            return list(await asyncio.gather(*waiting))
        numbers = iter(range(schedule.count))
        clients = [self._client(numbers) for _ in range(schedule.clients)]
        return [one for made in await asyncio.gather(*clients) for one in made]

    async def _client(self, numbers: Iterator[int]) -> list[Request]:
        return [await self._awaited(None) for _ in numbers]

    async def _awaited(self, due: float | None) -> Request:
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
        tokens = array("d")
        async for _ in stream:
            tokens.append(perf_counter())
            if len(tokens) > _MOST_TOKENS:
                raise _endless()
        return _ended(due, tokens)


def _is_asynchronous(stream: object) -> bool:
    return isinstance(stream, (AsyncIterable, Coroutine))


def _check_stream(stream: object) -> None:
    if isinstance(stream, _NO_STREAM) or not isinstance(stream, Iterable):
        raise _no_stream(stream)


def _no_stream(stream: object) -> Unusable:
    return Unusable(
        "not_a_stream",
        f"the stream is {repr(stream)[:80]}: return a generator or an async generator, which "
        "yields a token as soon as there is one",
    )


def _endless() -> Unusable:
    return Unusable(
        "endless_stream",
        f"a request gave more than {_MOST_TOKENS:,} tokens: end the stream, as by `max_tokens`",
    )


def _ended(due: float, tokens: array[float]) -> Request:
    ended = perf_counter()
    if not tokens:
        raise Unusable("no_tokens", "a request ended without a token: yield one at least")
    return Request(due, tokens, ended)
