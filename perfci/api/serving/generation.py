"""``perfci.generate``: requests for tokens as work, one call being all of a load's requests."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any
from urllib.parse import urlsplit

from perfci.api.serving.events import Endpoint
from perfci.api.serving.loops import Loop, Schedule
from perfci.api.serving.server import require_running
from perfci.api.work import Work
from perfci.clock import perf_counter
from perfci.errors import BenchmarkError
from perfci.metrics import Reading
from perfci.metrics.serving import OBJECTIVES, Requests

_OPEN_LOOP_REQUESTS = 16
_NAMES = ", ".join(OBJECTIVES)


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
    asked = _wrong_stream(stream, body, headers)
    if wrong := next(chain(asked, _wrong_load(concurrency, requests, rate, seed, objective)), ""):
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
        require_running()

    def begin(self) -> None:
        """Forget the requests so far."""
        self.requests = Requests(self.requests.objective)

    def reading(self) -> Reading:
        """Return what the requests were like."""
        return self.requests.reading()


def _wrong_stream(stream: Any, body: Any, headers: Any) -> Iterator[str]:
    """Yield what is wrong with what is asked, and what would be right."""
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
    if headers is not None and not _are_texts(headers):
        yield f"`headers` is {headers!r}; give texts by name"


def _wrong_load(
    concurrency: Any, requests: Any, rate: Any, seed: Any, objective: Any
) -> Iterator[str]:
    """Yield what is wrong with how often it is asked, and what would be right."""
    if not _is_count(concurrency):
        yield f"`concurrency` is {concurrency!r}; give how many clients there are: 1 or more"
    if requests is not None and not _is_count(requests):
        yield f"`requests` is {requests!r}; give how many a call has: 1 or more"
    if rate is None:
        if requests is not None and requests < concurrency:
            few = f"`requests` is {requests!r}, for {concurrency!r} clients"
            yield f"{few}; give at least one for each"
    elif not _is_positive(rate):
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
    if not all(map(_is_positive, objective.values())):
        yield f"`objective` is {objective!r}; give times in s: more than 0"


def _are_texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(one, str) for one in (*value, *value.values())
    )


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
