"""Work: what a benchmark hands over to be measured, whatever it was made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from perfci.record.metric import Direction, Gate, Kind, Metric


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
    threshold: float = 0.10,
    gate: Gate = "warn",
    exact: bool = False,
) -> ExtraMetric:
    """Return a metric of the benchmark's own, to be returned beside its callable."""
    kind: Kind = "exact" if exact else "per_worker"
    return ExtraMetric(Metric(name, unit, kind, threshold, gate, direction), measure)
