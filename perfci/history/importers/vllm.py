"""vLLM: the file of ``vllm bench serve --save-result``. Its times are in ms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from perfci.history.importers import ForeignResults, RunBuilder, environment_of
from perfci.model.case import Direction

TOOL = "vllm"
COMPANIONS = ()
_TIME = re.compile(r"(?P<kind>mean|median|p\d+(?:\.\d+)?)_(?P<what>[a-z0-9_]+)_ms")
"""Matches the key of a time, such as ``median_ttft_ms``."""
_METRICS = {"mean": "latency_mean", "median": "latency_p50"}
_RATES = {
    "request_throughput": ("requests", "throughput", "requests/s"),
    "request_goodput": ("requests", "goodput", "requests/s"),
    "output_throughput": ("output", "throughput", "tokens/s"),
    "total_token_throughput": ("tokens", "throughput", "tokens/s"),
}
"""Case, metric and unit of each rate."""
_LOAD = ("backend", "model_id", "num_prompts", "request_rate", "burstiness", "max_concurrency")
"""Keys that describe the load. They decide the environment."""
_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)")


def recognised(plain: Any) -> bool:
    """Return whether ``plain`` is a file of vLLM's serving benchmark."""
    return isinstance(plain, dict) and {"completed", "request_throughput"} <= plain.keys()


def read(plain: Any, builder: RunBuilder) -> ForeignResults:
    """Return the run of a file. Each kind of time (``ttft``) and of rate is a case.

    If any request failed, all cases fail: the remaining requests were quick because of it.
    """
    broken = _failed_requests(plain)
    for case, metric, unit, value, direction in _points(plain):
        if broken:
            builder.fail(case, f"{broken} requests failed")
        else:
            builder.add_point(case, metric, unit, value, direction)
    load = {key: plain.get(key) for key in _LOAD}
    notes = {"tokenizer": plain.get("tokenizer_id")}
    date = _DATE.fullmatch(str(plain.get("date")))
    return builder.results(
        environment_of(TOOL, (plain.get("model_id"),), load, notes),
        measured_at=builder.time("{}-{}-{}T{}:{}:{}".format(*date.groups())) if date else "",
    )


def _points(plain: Mapping[str, Any]) -> Iterator[tuple[str, str, str, float, Direction]]:
    numbers = ((key, value) for key, value in plain.items() if isinstance(value, (int, float)))
    for key, value in numbers:
        if key in _RATES:
            case, metric, unit = _RATES[key]
            yield case, metric, unit, value, "higher"
        elif match := _TIME.fullmatch(key):
            kind = match["kind"]
            yield match["what"], _METRICS.get(kind, f"latency_{kind}"), "s", value / 1e3, "lower"


def _failed_requests(plain: Mapping[str, Any]) -> int:
    """Return how many requests failed. Older files only say how many were planned and completed."""
    failed = plain.get("failed")
    if isinstance(failed, int):
        return failed
    planned, completed = plain.get("num_prompts"), plain.get("completed")
    return planned - completed if isinstance(planned, int) and isinstance(completed, int) else 0
