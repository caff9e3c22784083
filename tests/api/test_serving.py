"""A load's requests: what they send, how their tokens are counted, and that figures are right.

The servers are real, in this process. Where times matter, the clock is the server's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from statistics import mean
from typing import Any

import numpy as np
import pytest

import perfci
from perfci.api.serving.events import stream_event
from perfci.collector import Reading, Work
from perfci.errors import Unusable
from tests.builders.token_server import Reply, TokenServer, independent_figures, token_server

FIRST, BETWEEN = "time_to_first_token", "inter_token_latency"
WITHIN = 0.02
SLOWER_S = 0.005
CALM = Reply([(0.003, ["a "]), *[(0.001, ["b "])] * 7], usage="end")
FAILS = Reply([], status=503, chunked=False)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., TokenServer]]:
    """Start a server whose clock is that of the requests. Close its connections at the end."""
    with ExitStack() as stack:

        def connected(*address: Any) -> HTTPConnection:
            return stack.enter_context(closing(HTTPConnection(*address)))

        monkeypatch.setattr("perfci.api.serving.endpoint.HTTPConnection", connected)

        def start(*replies: Reply, lockstep: bool = True) -> TokenServer:
            server = stack.enter_context(token_server(*replies, lockstep=lockstep))
            monkeypatch.setattr("perfci.api.serving.load.perf_counter", server.clock)
            return server

        yield start


def read(work: Work, calls: int = 1) -> Reading:
    """Return what these calls' observer reports."""
    assert work.observer
    for _ in range(calls):
        work.call()
    return work.observer.reading()


def word_count(text: str) -> int:
    return len(text.split())


def test_an_event_whose_error_is_null_carries_tokens() -> None:
    event = stream_event('{"error": null, "choices": [{"delta": {"content": "a"}}]}')
    assert event.has_tokens


def varying_replies(
    prefill_s: float = 0.0, decode_s: float = 0.0, usage: str = "each"
) -> list[Reply]:
    """Return replies whose times, events and tokens per event differ, with some time added."""
    draw = random.Random(7)
    return [
        Reply(
            [
                (draw.lognormvariate(-4.0, 0.3) + prefill_s, ["a "] * draw.randint(1, 3)),
                *(
                    (draw.lognormvariate(-6.0, 0.3) + decode_s, ["b "] * draw.randint(1, 3))
                    for _ in range(draw.randint(3, 9))
                ),
            ],
            usage=usage,
        )
        for _ in range(64)
    ]


def test_figures_agree_with_an_independent_client_of_the_same_server(
    serve: Callable[..., TokenServer],
) -> None:
    server = serve(*varying_replies())
    reading = read(perfci.generate(server.url, body={"prompt": "a"}, requests=64))
    other = independent_figures(server.url, 64, server.clock, word_count)
    assert len(server.bodies) == 2 * 64
    expected = {
        FIRST: np.median(other.first),
        f"{FIRST}_p95": np.quantile(other.first, 0.95, method="median_unbiased"),
        f"{BETWEEN}_p50": np.median(other.between),
        f"{BETWEEN}_p95": np.quantile(other.between, 0.95, method="median_unbiased"),
        f"{BETWEEN}_p99": np.quantile(other.between, 0.99, method="median_unbiased"),
        "end_to_end": np.median(other.whole),
        "tokens_per_request": mean(other.tokens),
        "tokens_per_second": sum(other.tokens) / sum(other.whole),
    }
    ours = {**reading.values, **{name: calls[0] for name, calls in reading.calls.items()}}
    assert {name: ours[name] for name in expected} == pytest.approx(expected, rel=WITHIN)
    assert reading.missing[f"{FIRST}_p99"] == "64 requests a worker; needs 299"


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_time_planted_in_a_phase_is_that_phases_alone(
    serve: Callable[..., TokenServer], phase: str
) -> None:
    """An event of decode has up to three tokens, which share the time."""
    readings = []
    for planted in ({}, {f"{phase}_s": SLOWER_S}):
        server = serve(*varying_replies(**planted, usage=""))
        work = perfci.generate(server.url, body={}, requests=64)
        readings.append({name: calls[0] for name, calls in read(work).calls.items()})
    base, head = readings
    longer = {name: head[name] - base[name] for name in base}
    assert longer[FIRST] == pytest.approx(SLOWER_S if phase == "prefill" else 0.0, abs=1e-9)
    assert longer[f"{BETWEEN}_p50"] == pytest.approx(SLOWER_S if phase == "decode" else 0, abs=1e-9)
    assert longer["end_to_end"] > 0.9 * SLOWER_S


def test_a_stream_without_a_token_fails_the_case(serve: Callable[..., TokenServer]) -> None:
    server = serve(Reply([(0.0, [])]))
    with pytest.raises(Unusable) as failure:
        perfci.generate(server.url, body={}).call()
    assert failure.value.kind == "no_tokens"


def test_a_request_that_fails_fails_the_case(serve: Callable[..., TokenServer]) -> None:
    server = serve(CALM, FAILS, lockstep=False)
    with pytest.raises(Unusable, match="answered 503"):
        read(perfci.generate(server.url, body={}, requests=4))
