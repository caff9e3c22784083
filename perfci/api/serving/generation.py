"""``perfci.generate``: requests for tokens as work; one call makes all requests of a load."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

from perfci.api import is_count, is_positive, require
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
            "an open loop (`rate`) has no `concurrency`: requests don't wait for others",
        ),
        (
            rate is not None or requests is None or requests >= concurrency,
            f"`requests` is {requests!r}, for {concurrency!r} clients; give one for each at least",
        ),
    ):
        require(right, "generate", wrong, advice)
