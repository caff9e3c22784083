"""Work: what a benchmark hands over to be measured, whatever it was made from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from perfci.api.definition import NAME, user_frame
from perfci.errors import BenchmarkError
from perfci.model.metric import Direction, Gate, Kind, Metric
from perfci.units import parse_share

_LONGEST_NAME, _LONGEST_UNIT = 100, 50
"""What a report keeps of either."""
_DIRECTIONS, _GATES = get_args(Direction), get_args(Gate)


@dataclass(frozen=True, slots=True)
class ExtraMetric:
    """A metric of the benchmark's own; ``measure`` is called once a worker, after the bursts."""

    metric: Metric
    measure: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Work:
    """One call to measure and what is known about it.

    ``device`` is a torch device string, or empty where only the outputs tell. ``items`` is
    how many items one call handles. ``accuracy`` returns (candidate outputs, float64
    reference outputs) when asked, after the timing.
    """

    call: Callable[[], Any]
    mode: str = "eager"
    compiled: bool = False
    device: str = ""
    items: float | None = None
    accuracy: Callable[[], tuple[Any, Any]] | None = None
    metrics: tuple[ExtraMetric, ...] = field(default=())


def metric(
    name: str,
    measure: Callable[[], float],
    *,
    unit: str = "",
    direction: Direction = "lower",
    threshold: float | str = 0.10,
    gate: Gate = "warn",
    exact: bool = False,
) -> ExtraMetric:
    """Return a metric of the benchmark's own, to be returned beside its callable.

    ``threshold`` is a share: "5%" or 0.05. Raises BenchmarkError, with file and line, where it is
    written wrongly.
    """
    kind: Kind = "exact" if exact else "per_worker"
    try:
        share, expected = parse_share(threshold), ""
    except ValueError as error:
        share, expected = 0.0, f"its `threshold` is {threshold!r}, not {error}"
    made = Metric(name, unit, kind, share, gate, direction)
    wrong = (
        why_unfit(made)
        or expected
        or ("" if callable(measure) else f"its `measure` is {measure!r}")
    )
    if wrong:
        raise BenchmarkError(
            "bad-metric",
            f"{user_frame()}: perfci.metric: {wrong}",
            'Write perfci.metric("hits", function, unit="count", direction="lower", '
            'threshold="5%", gate="fail"): a share and one of fail, warn, info.',
        )
    return ExtraMetric(made, measure)


def why_unfit(metric: Metric) -> str:
    """Return what is wrong with a metric of a benchmark's own, or nothing.

    Asked where it is written, and by the parent: the message that brings it can be anyone's.
    """
    share = metric.threshold
    checks = (
        ("name", metric.name, _is_name(metric.name), "letters, digits, `_`, `.`, `-`; at most 100"),
        ("unit", metric.unit, _is_short_text(metric.unit), "text of at most 50 characters"),
        ("direction", metric.direction, metric.direction in _DIRECTIONS, "lower or higher"),
        ("gate", metric.gate, metric.gate in _GATES, "fail, warn or info"),
        ("threshold", share, _is_number(share) and 0.0 <= share < math.inf, "a share of base"),
    )
    wrong = (
        f"its `{option}` is {value!r}, not {wanted}"
        for option, value, sound, wanted in checks
        if not sound
    )
    return next(wrong, "")


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(NAME.fullmatch(name)) and len(name) <= _LONGEST_NAME


def _is_short_text(text: object) -> bool:
    return isinstance(text, str) and len(text) <= _LONGEST_UNIT and text.isprintable()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
