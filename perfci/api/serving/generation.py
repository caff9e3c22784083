"""``perfci.generate``: requests for tokens as work, one call being all of a load's requests."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from perfci.api.serving.events import Endpoint
from perfci.api.serving.loops import Loop, Schedule
from perfci.api.work import Work
from perfci.errors import BenchmarkError
from perfci.metrics import Reading
from perfci.metrics.serving import OBJECTIVES, Requests

_OPEN_LOOP_REQUESTS = 16


def generation_work(
    stream: Callable[[], Any] | str,
    *,
    body: Any,
    headers: Mapping[str, str] | None,
    concurrency: int,
    requests: int | None,
    rate: float | None,
    seed: int,
    objective: Mapping[str, float],
    where: str,
) -> Work:
    """Return the work of ``perfci.generate``. BenchmarkError, at ``where``, for a wrong load."""
    if wrong := _wrong(stream, body, headers, concurrency, requests, rate, objective):
        raise BenchmarkError(
            "bad-load",
            f"{where}: perfci.generate: {wrong}",
            'Write perfci.generate(stream) or perfci.generate("http://127.0.0.1:8000/generate", '
            'body={"prompt": "…"}, concurrency=4): docs/serving.md.',
        )
    opened = Endpoint(stream, body, headers or {}) if isinstance(stream, str) else stream
    if rate is None:
        count = requests or concurrency
        schedule = Schedule(count, clients=concurrency)
    else:
        count = requests or _OPEN_LOOP_REQUESTS
        schedule = Schedule(count, clients=count, arrivals=arrivals(rate, count, seed))
    load = _Load(Loop(opened, schedule), Requests(dict(objective)))
    return Work(load, items=float(count), observer=load)


def arrivals(rate: float, count: int, seed: int) -> tuple[float, ...]:
    """Return when ``count`` requests arrive, in s: a Poisson process' first arrivals."""
    draw = random.Random(seed)  # noqa: S311 (a load, no secret)
    return tuple(accumulate(draw.expovariate(rate) for _ in range(count)))


@dataclass(slots=True, eq=False)
class _Load:
    """Makes a call's requests; keeps what they were like."""

    loop: Loop
    requests: Requests

    def __call__(self) -> None:
        began = perf_counter()
        made = self.loop.run()
        self.requests.add(made, perf_counter() - began)

    def begin(self) -> None:
        """Forget the requests so far."""
        self.requests = Requests(self.requests.objective)

    def reading(self) -> Reading:
        """Return what the requests were like."""
        return self.requests.reading()


def _wrong(
    stream: Any,
    body: Any,
    headers: Any,
    concurrency: Any,
    requests: Any,
    rate: Any,
    objective: Any,
) -> str:
    """Return what is wrong with the arguments, or nothing."""
    strange = [name for name in objective if name not in OBJECTIVES]
    checks = (
        (isinstance(stream, str) or callable(stream), f"the stream is {stream!r}"),
        (
            not isinstance(stream, str) or _is_url(stream),
            f"the URL is {stream!r}",
        ),
        (
            isinstance(stream, str) or (body is None and headers is None),
            "`body` and `headers` are a URL's; the stream is a callable",
        ),
        (_is_count(concurrency), f"`concurrency` is {concurrency!r}"),
        (requests is None or _is_count(requests), f"`requests` is {requests!r}"),
        (
            rate is not None or requests is None or requests >= concurrency,
            f"`requests` is {requests!r}, for {concurrency!r} clients",
        ),
        (rate is None or _is_positive(rate), f"`rate` is {rate!r}"),
        (
            rate is None or concurrency == 1,
            "an open loop (`rate`) has no `concurrency`: requests don't wait for others",
        ),
        (
            not strange,
            f"`objective` names {', '.join(map(repr, strange))}, none of {', '.join(OBJECTIVES)}",
        ),
        (all(map(_is_positive, objective.values())), f"`objective` is {objective!r}"),
    )
    return next((what for sound, what in checks if not sound), "")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").encode("idna")
        return parts.scheme in {"http", "https"} and bool(host) and parts.port != 0
    except ValueError:  # a port beyond 65535, a label that is empty or too long
        return False


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_positive(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0.0 < float(value) < math.inf  # type: ignore[arg-type]
