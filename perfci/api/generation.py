"""``perfci.generate``: requests for tokens as work; one call makes all requests of a load."""

from __future__ import annotations

import json
import random
from array import array
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from itertools import accumulate, chain
from time import sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from perfci.api import are_texts, is_count, is_positive, require_right
from perfci.api.programs import ended_servers, require_running
from perfci.clock import perf_counter
from perfci.collector import Work
from perfci.errors import Unusable
from perfci.metrics import Reading
from perfci.metrics.serving import OBJECTIVES, Request, Requests

if TYPE_CHECKING:
    from asyncio import Runner
    from concurrent.futures import Future, ThreadPoolExecutor

_OPEN_LOOP_REQUESTS = 16
_NAMES = ", ".join(OBJECTIVES)
_MOST_TOKENS = 1_000_000
"""Most tokens of a request. Without a limit, an endless stream would take all memory."""
_NO_STREAM = (str, bytes, list, tuple, dict)
"""Iterable types that aren't streams: they hold all their items from the start."""
_CHUNK = 1 << 16
_LONGEST_EVENT_LINE = 1 << 20
_SHOWN_CHARACTERS = 500
_MOST_DIGITS = 18
"""Digits of a ``Content-Length`` that are read. A longer number is as good as endless."""
_BOM = "\ufeff".encode()
"""Byte order mark, with which a stream of events may begin."""
_DONE = b"[DONE]"
"""Data of the event that ends a stream by OpenAI's convention."""
_FIELDS = frozenset({b"data", b"event", b"id", b"retry", b""})
"""Fields of server-sent events. The empty name is that of a comment, which begins with a colon."""
_NO_TEXT = frozenset({"role"})
"""Keys of a choice's ``delta`` that don't hold the model's text."""


def generate(
    stream: Callable[[], Any] | str,
    *,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    concurrency: int = 1,
    requests: int | None = None,
    rate: float | None = None,
    seed: int = 0,
    objective: Mapping[str, float] | None = None,
) -> Work:
    """Return the work of a load's requests for tokens, each consumed to its end.

    ``stream()`` returns a generator or an async generator of tokens. A URL streams server-sent
    events; ``body`` is sent to it as JSON by POST. Closed loop: ``concurrency`` clients make
    ``requests`` in all (default: one each). Open loop: ``requests`` (16) arrive at ``rate`` a
    second, at random times of ``seed``, the same in every call. ``objective`` has the longest
    times, in s, of the requests that count as ``goodput``.
    """
    require_right(
        "generate",
        "bad-load",
        chain(
            _wrong_stream(stream, body, headers),
            _wrong_load(concurrency, requests, rate, seed, objective or {}),
        ),
        'Write perfci.generate(stream) or perfci.generate("http://127.0.0.1:8000/generate", '
        'body={"prompt": "…"}, concurrency=4): docs/serving.md.',
    )
    opened = Endpoint(stream, body, headers or {}) if isinstance(stream, str) else stream
    if rate is None:
        count = requests or concurrency
        load = RequestLoad(opened, dict(objective or {}), count, concurrency)
    else:
        count = requests or _OPEN_LOOP_REQUESTS
        due = arrivals(rate, count, seed)
        load = RequestLoad(opened, dict(objective or {}), count, clients=count, arrivals=due)
    return Work(load, items=float(count), observer=load)


def arrivals(rate: float, count: int, seed: int) -> tuple[float, ...]:
    """Return the arrival times of ``count`` requests, in s: the first of a Poisson process."""
    draw = random.Random(seed)  # noqa: S311 (a load, no secret)
    return tuple(accumulate(draw.expovariate(rate) for _ in range(count)))


def _wrong_stream(stream: Any, body: Any, headers: Any) -> Iterator[str]:
    """Yield errors in the stream and its request, each with its correction."""
    if not isinstance(stream, str):
        if not callable(stream):
            yield f"the stream is {stream!r}; give what returns a generator of tokens, or a URL"
        if body is not None or headers is not None:
            yield "`body` and `headers` are a URL's; the stream is a callable: leave them out"
        return
    if not _is_url(stream):
        yield f"the URL is {stream!r}; give one of http:// or https:// with a host"
    try:
        json.dumps(body)
    except (TypeError, ValueError, RecursionError) as error:
        yield f"`body` is no JSON: {error}; give texts, numbers, lists and dicts"
    if headers is not None and not are_texts(headers):
        yield f"`headers` is {headers!r}; give texts by name"


def _wrong_load(
    concurrency: Any, requests: Any, rate: Any, seed: Any, objective: Any
) -> Iterator[str]:
    """Yield errors in the load, each with its correction."""
    if not is_count(concurrency):
        yield f"`concurrency` is {concurrency!r}; give how many clients there are: 1 or more"
    if requests is not None and not is_count(requests):
        yield f"`requests` is {requests!r}; give how many a call has: 1 or more"
    if rate is None:
        if requests is not None and requests < concurrency:
            few = f"`requests` is {requests!r}, for {concurrency!r} clients"
            yield f"{few}; give at least one for each"
    elif not is_positive(rate):
        yield f"`rate` is {rate!r}; give how many arrive a second: more than 0"
    elif concurrency != 1:
        yield "an open loop (`rate`) has no `concurrency`: requests don't wait for others"
    if not isinstance(seed, int):
        yield f"`seed` is {seed!r}; give a whole number"
    if not isinstance(objective, Mapping):
        yield f"`objective` is {objective!r}; give the most seconds by name: {_NAMES}"
        return
    if strange := [name for name in objective if name not in OBJECTIVES]:
        yield f"`objective` names {', '.join(map(repr, strange))}, none of {_NAMES}"
    if not all(map(is_positive, objective.values())):
        yield f"`objective` is {objective!r}; give times in s: more than 0"


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").encode("idna")
        return parts.scheme in {"http", "https"} and bool(host) and parts.port != 0
    except ValueError:  # a port beyond 65535, a label that is empty or too long
        return False


@dataclass(slots=True, eq=False)
class RequestLoad:
    """Makes a call's requests, reads each to its end, and keeps their times.

    ``clients`` clients make ``count`` requests in all. If there are ``arrivals``, each request is
    made at its arrival time.
    """

    opened: Callable[[], Any]
    objective: Mapping[str, float]
    count: int
    clients: int
    arrivals: tuple[float, ...] = ()
    _requests: Requests = field(init=False)
    _unused: list[Any] = field(default_factory=list)
    _asynchronous: bool | None = None
    _threads: ThreadPoolExecutor | None = None
    _runner: Runner | None = None

    def __post_init__(self) -> None:
        self.begin()

    def __call__(self) -> None:
        """Make a call's requests."""
        began = perf_counter()
        requests = self._make_requests()
        self._requests.add(requests, perf_counter() - began)
        require_running()

    def begin(self) -> None:
        """Forget the requests so far."""
        self._requests = Requests(self.objective)

    def reading(self) -> Reading:
        """Return the metrics of the requests."""
        return self._requests.reading()

    def _make_requests(self) -> list[Request]:
        """Make a call's requests and read them to their ends. Raises Unusable if one fails."""
        first = None
        if self._asynchronous is None:
            first = perf_counter()
            self._unused.append(self.opened())  # its type decides how streams are consumed
            self._asynchronous = isinstance(self._unused[0], (AsyncIterable, Coroutine))
        if self._asynchronous:
            return self._in_event_loop()
        if self.clients == 1 and not self.arrivals:
            due = (first, *[None] * (self.count - 1))
            return [self._request(moment) for moment in due]
        return self._in_threads()

    def _open(self) -> Any:
        """Return a stream. The first stream was opened before, to find out its type."""
        try:
            return self._unused.pop()
        except IndexError:
            return self.opened()

    def _request(self, due: float | None = None) -> Request:
        due = perf_counter() if due is None else due
        stream = self._open()
        if isinstance(stream, _NO_STREAM) or not isinstance(stream, Iterable):
            raise _no_stream(stream)
        tokens = array("d")
        for _ in stream:
            tokens.append(perf_counter())
            if len(tokens) > _MOST_TOKENS:
                raise _endless()
        return _ended(due, tokens)

    def _in_threads(self) -> list[Request]:
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.clients, "perfci-client")
        submit = self._threads.submit
        if self.arrivals:
            began = perf_counter()
            futures: list[Future[Request]] = []
            for after in self.arrivals:
                sleep(max(0.0, began + after - perf_counter()))
                futures.append(submit(self._request, began + after))
        else:  # a client makes its next request as soon as its last one has ended
            futures = [submit(self._request) for _ in range(self.count)]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        return [future.result() for future in futures]

    def _in_event_loop(self) -> list[Request]:
        import asyncio

        if (
            self._runner is None
        ):  # one for all calls, because a server's objects may be bound to its loop
            self._runner = asyncio.Runner()
        return self._runner.run(self._all_requests())

    async def _all_requests(self) -> list[Request]:
        import asyncio

        began = perf_counter()
        if self.arrivals:
            waiting = [self._awaited(began + after) for after in self.arrivals]
            return list(await asyncio.gather(*waiting))
        numbers = iter(range(self.count))
        clients = [self._client(numbers) for _ in range(self.clients)]
        return [request for made in await asyncio.gather(*clients) for request in made]

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


# A URL as a stream.


class Endpoint:
    """A URL to request. Each call makes one request on its own connection."""

    def __init__(self, url: str, body: Any, headers: Mapping[str, str]) -> None:
        self.url = url
        parts = urlsplit(url)
        self._connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._address = parts.hostname or "", parts.port
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._method = "GET" if body is None else "POST"
        self._body = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        self._headers = {"Accept": "text/event-stream", **kind, **headers}

    def __call__(self) -> Iterator[str]:
        """Yield each token's event. Raises Unusable for anything but a whole stream of events."""
        connection = self._connect(*self._address)
        tokens = 0
        try:
            connection.request(self._method, self._target, self._body, self._headers)
            response = connection.getresponse()
            self._check(response)
            for payload in _payloads(response):
                if _is_token(payload):
                    tokens += 1
                    yield payload
        except (OSError, HTTPException) as error:
            what = f"failed after {tokens} tokens: {str(error) or type(error).__name__}"
            raise self._failure("request_failed", what) from error
        except ValueError as error:
            raise self._failure("bad_stream", str(error)) from error
        finally:
            connection.close()

    def _check(self, response: HTTPResponse) -> None:
        if response.status != 200:
            body = response.read(_SHOWN_CHARACTERS).decode("utf-8", "replace")
            what = f"answered {response.status} {response.reason}:\n{body}"
            raise self._failure("request_failed", what)
        kind = response.headers.get_content_type()
        if kind != "text/event-stream":
            raise ValueError(f"answered {kind}, not text/event-stream")

    def _failure(self, kind: str, what: str) -> Unusable:
        return Unusable(kind, "\n".join((f"{self._method} {self.url} {what}", *ended_servers())))


def _payloads(response: HTTPResponse) -> Iterator[str]:
    """Yield each event's data, up to ``[DONE]`` or the body's end.

    Raises ValueError for a line that isn't part of an event, and for a body that was cut off. A
    body without a length ends when the connection closes, so its last event has to be ``[DONE]``.
    """
    data: list[bytes] = []
    done = False
    for line in _lines(response):
        if done:  # read the rest, too, so that the server ends this request
            continue
        if not line:
            if data:
                yield b"\n".join(data).decode("utf-8", "replace")
                data.clear()
            continue
        name, _, value = line.partition(b":")
        if name not in _FIELDS:
            shown = repr(line.decode("utf-8", "replace")[:80])
            raise ValueError(f"sent a line that is no server-sent event: {shown}")
        if name != b"data":
            continue
        value = value.removeprefix(b" ")
        done = value == _DONE
        if not done:
            data.append(value)
    if done:
        return
    if data:
        raise ValueError("ended in the middle of an event")
    if not response.chunked and response.headers["Content-Length"] is None:
        raise ValueError("closed the connection without `data: [DONE]`")


def _lines(response: HTTPResponse) -> Iterator[bytes]:
    """Yield the lines of a body as they arrive, without their ends."""
    length = response.headers["Content-Length"]
    if length and not response.chunked and not (length.isascii() and length.isdigit()):
        raise ValueError(f"sent the length {length[:80]!r}")
    left = int(length[:_MOST_DIGITS]) if length and not response.chunked else None
    unread, begins = b"", True
    while left is None or left > 0:
        chunk = response.read1(_CHUNK if left is None else min(_CHUNK, left))
        if not chunk:
            break
        if left is not None:
            left -= len(chunk)
        *lines, unread = (unread + chunk).split(b"\n")
        for line in lines:
            yield (line.removeprefix(_BOM) if begins else line).removesuffix(b"\r")
            begins = False
        if len(unread) > _LONGEST_EVENT_LINE:
            raise ValueError(f"sent a line of more than {_LONGEST_EVENT_LINE:,} bytes")
    if left:
        raise ValueError(f"ended {left} bytes early")
    if unread:
        raise ValueError("ended in the middle of a line")


def _is_token(payload: str) -> bool:
    """Return whether an event carries a token.

    In OpenAI's streams, the first event (the role), the last (the reason to stop) and the counts
    carry no token. Any other event carries one. Raises ValueError for an error that the stream
    reports.
    """
    if not payload.startswith("{"):
        return True
    try:
        event = json.loads(payload)
    except (ValueError, RecursionError):
        if '"choices"' in payload[:_SHOWN_CHARACTERS]:
            raise ValueError(f"sent an event that is no JSON: {payload[:80]!r}") from None
        return True  # a token of plain text may be a bracket
    if "error" in event:
        raise ValueError(f"reported an error: {json.dumps(event['error'])[:_SHOWN_CHARACTERS]}")
    choices = event.get("choices")
    if not isinstance(choices, list):
        return True
    return any(map(_has_text, choices))


def _has_text(choice: Any) -> bool:
    if not isinstance(choice, dict) or choice.get("text"):
        return True
    delta = choice.get("delta")
    return isinstance(delta, dict) and any(
        value for name, value in delta.items() if name not in _NO_TEXT
    )
