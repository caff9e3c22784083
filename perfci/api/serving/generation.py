"""``perfci.generate``: requests for tokens as work; one call makes all requests of a load."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, chain
from typing import Any

from perfci.api import are_texts, is_count, is_positive, require_right
from perfci.api.serving.endpoint import Endpoint, is_url
from perfci.api.serving.load import RequestLoad
from perfci.collector import Work

_OPEN_LOOP_REQUESTS = 16


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
    require_right(
        "generate",
        "bad-load",
        chain(_wrong_stream(stream, body, headers), _wrong_load(concurrency, requests, rate, seed)),
        'Write perfci.generate(stream) or perfci.generate("http://127.0.0.1:8000/generate", '
        'body={"prompt": "…"}, concurrency=4): docs/serving.md.',
    )
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


def _wrong_stream(stream: Any, body: Any, headers: Any) -> Iterator[str]:
    """Yield errors in the stream and its request, each with its correction."""
    if not isinstance(stream, str):
        if not callable(stream):
            yield f"the stream is {stream!r}; give what returns a generator of tokens, or a URL"
        if body is not None or headers is not None:
            yield "`body` and `headers` are a URL's; the stream is a callable: leave them out"
        return
    if not is_url(stream):
        yield f"the URL is {stream!r}; give one of http:// with a host"
    try:
        json.dumps(body)
    except (TypeError, ValueError, RecursionError) as error:
        yield f"`body` is no JSON: {error}; give texts, numbers, lists and dicts"
    if headers is not None and not are_texts(headers):
        yield f"`headers` is {headers!r}; give texts by name"


def _wrong_load(concurrency: Any, requests: Any, rate: Any, seed: Any) -> Iterator[str]:
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
