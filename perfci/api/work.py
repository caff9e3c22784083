"""Work: what a benchmark hands over to be measured, whatever it was made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from perfci.api.definition import user_frame
from perfci.errors import BenchmarkError
from perfci.metrics import Observer, Ranks
from perfci.metrics.own import ExtraMetric
from perfci.model.finding import Finding
from perfci.model.metric import Direction, Gate, Kind, Metric, why_unfit
from perfci.units import parse_share


@dataclass(frozen=True, slots=True)
class Work:
    """One call to measure and what is known about it.

    ``device`` is a torch device string, or empty where only the outputs show it. ``items`` is
    how many items one call handles. ``accuracy`` returns (candidate outputs, float64
    reference outputs) when asked, after the timing; ``remarks`` what to know beside metrics, by
    metric; ``plain`` is one call as eager makes it, where that is known; ``observer`` sees what
    calls took besides; ``ranks`` lead the processes that calls are made of.
    """

    call: Callable[[], Any]
    mode: str = "eager"
    compiled: bool = False
    device: str = ""
    items: float | None = None
    accuracy: Callable[[], tuple[Any, Any]] | None = None
    plain: Callable[[], Any] | None = None
    metrics: tuple[ExtraMetric, ...] = field(default=())
    remarks: Callable[[], Mapping[str, Finding]] = dict
    observer: Observer | None = None
    ranks: Ranks | None = None


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
