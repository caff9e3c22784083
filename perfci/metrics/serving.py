"""Requests for tokens: time to the first token, time between tokens, and their number."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from perfci.metrics import Observation, Reading
from perfci.model.case import Metric
from perfci.stats.quantile import median, samples_needed, tail_quantile

PLACE = 1.6
METRICS = {
    Metric("time_to_first_token", "s", "sampled", 0.05, "fail"): (
        "time of [a request](serving.md) from when it was due to its first token, median"
    ),
    Metric("time_to_first_token_p95", "s", "per_worker", 0.10, "warn"): (
        "95th percentile of the time to the first token; needs 59 requests per worker"
    ),
    Metric("time_to_first_token_p99", "s", "per_worker", 0.10, "warn"): (
        "99th percentile of the time to the first token; needs 299 requests per worker"
    ),
    Metric("inter_token_latency_p50", "s", "sampled", 0.05, "fail"): (
        "time between one token of a request and the next, median"
    ),
    Metric("inter_token_latency_p95", "s", "per_worker", 0.10, "warn"): (
        "95th percentile of the time between tokens; needs 59 of them per worker"
    ),
    Metric("inter_token_latency_p99", "s", "per_worker", 0.10, "warn"): (
        "99th percentile of the time between tokens; needs 299 of them per worker"
    ),
    Metric("tokens_per_second", "tokens/s", "per_worker", 0.05, "info", "higher"): (
        "tokens of all requests ÷ time of the calls; higher is better"
    ),
    Metric("tokens_per_request", "tokens", "exact", 0.001, "fail", "higher"): (
        "mean number of tokens of a request; fewer are a regression, however fast they came"
    ),
    Metric("end_to_end", "s", "sampled", 0.05, "warn"): (
        "time of a request from when it was due to its end, median"
    ),
}
FIRST, END = "time_to_first_token", "end_to_end"
_BETWEEN, _MEDIAN_BETWEEN = "inter_token_latency", "inter_token_latency_p50"
_TAILS = {"p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Request:
    """One request: when it was due, when each of its tokens came, and when it had ended, in s."""

    due: float
    tokens: array[float]
    ended: float

    def gaps(self) -> list[float]:
        """Return the times between the request's tokens."""
        return [after - before for before, after in pairwise(self.tokens)]


@dataclass(slots=True)
class Requests:
    """Sums and times of the requests of all calls so far. Times in s."""

    calls: dict[str, array[float]] = field(default_factory=dict)
    gaps: array[float] = field(default_factory=lambda: array("d"))
    firsts: array[float] = field(default_factory=lambda: array("d"))
    took: float = 0.0
    count: int = 0
    tokens: int = 0

    def add(self, requests: Sequence[Request], took: float) -> None:
        """Add the requests of a call, which took ``took``."""
        between = [gap for request in requests for gap in request.gaps()]
        firsts = [request.tokens[0] - request.due for request in requests]
        self._add(FIRST, firsts)
        self._add(END, [request.ended - request.due for request in requests])
        self._add(_MEDIAN_BETWEEN, between)
        self.gaps.extend(between)
        self.firsts.extend(firsts)
        self.took += took
        self.count += len(requests)
        self.tokens += sum(len(request.tokens) for request in requests)

    def _add(self, metric: str, times: Sequence[float]) -> None:
        self.calls.setdefault(metric, array("d")).append(median(times) if times else math.nan)

    def reading(self) -> Reading:
        """Return the metrics of the requests so far."""
        if not self.count:
            return Reading()
        values = {
            "tokens_per_second": self.tokens / self.took,
            "tokens_per_request": self.tokens / self.count,
        }
        missing = {}
        tails = ((_BETWEEN, self.gaps, "tokens after another"), (FIRST, self.firsts, "requests"))
        for name, times, counted in tails:
            for tail, q in _TAILS.items():
                if len(times) >= (needed := samples_needed(q)):
                    values[f"{name}_{tail}"] = tail_quantile(times, q)
                else:
                    missing[f"{name}_{tail}"] = f"{len(times)} {counted} a worker; needs {needed}"
        calls = {
            name: times for name, times in self.calls.items() if not any(map(math.isnan, times))
        }
        if _MEDIAN_BETWEEN not in calls:
            missing[_MEDIAN_BETWEEN] = "calls of which no request had a second token"
        return Observation(values, missing, calls=calls)
