"""The metrics of design 5.1: name, unit, direction, kind, default threshold and gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Direction = Literal["lower", "higher"]
Kind = Literal["sampled", "per_worker", "exact"]
Gate = Literal["fail", "warn", "info"]
Undecided = Literal["inconclusive", "pass"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric and its default policy.

    ``threshold`` is a share of base (0.05: five per cent), or an amount in ``unit`` where
    ``absolute`` is set (metrics whose base may be zero); then never less than ``share`` of base.
    ``floor``: smaller values count as this much. ``undecided`` says what an inconclusive gating
    comparison makes of the verdict. ``rounds_setting`` is the setting that gives it more rounds.
    A metric of the kind ``exact`` is tested, too, where the workers of a side disagree. ``always``:
    every case that is measured has it, where the machine can tell it at all.
    """

    name: str
    unit: str
    kind: Kind
    threshold: float
    gate: Gate
    direction: Direction = "lower"
    absolute: bool = False
    share: float = 0.0
    floor: float | None = None
    undecided: Undecided = "pass"
    rounds_setting: str = "rounds"
    always: bool = False


_ALL = (
    Metric("latency_p50", "s", "sampled", 0.05, "fail", undecided="inconclusive", always=True),
    Metric("latency_p95", "s", "sampled", 0.10, "warn"),
    Metric("latency_p99", "s", "sampled", 0.10, "warn"),
    Metric("latency_mean", "s", "sampled", 0.05, "info"),
    Metric("device_time_p50", "s", "sampled", 0.05, "warn"),
    Metric("throughput", "items/s", "sampled", 0.05, "info", "higher"),
    Metric("jitter", "ratio", "sampled", 0.50, "info"),
    Metric("cold_start", "s", "per_worker", 0.10, "fail"),
    Metric("import_time", "s", "per_worker", 0.10, "warn"),
    Metric("compile_time", "s", "per_worker", 0.10, "fail", rounds_setting="compile_rounds"),
    Metric("compile_time_cached", "s", "per_worker", 0.10, "warn"),
    Metric("peak_device_memory", "bytes", "exact", 0.10, "fail", undecided="inconclusive"),
    Metric("peak_device_memory_reserved", "bytes", "exact", 0.10, "info"),
    Metric(
        "peak_host_memory",
        "bytes",
        "per_worker",
        0.10,
        "fail",
        undecided="inconclusive",
        always=True,
    ),
    Metric(
        "host_memory_over_setup",
        "bytes",
        "per_worker",
        float(4 << 20),
        "fail",
        absolute=True,
        share=0.10,
        undecided="inconclusive",
        always=True,
    ),
    Metric("memory_growth", "bytes/call", "exact", 16.0, "warn", absolute=True),
    Metric("graph_breaks", "count", "exact", 0.0, "fail", absolute=True, undecided="inconclusive"),
    Metric("recompiles", "count", "exact", 0.0, "fail", absolute=True, undecided="inconclusive"),
    Metric("graphs", "count", "exact", 0.0, "info", absolute=True),
    Metric("accuracy_loss", "ratio", "exact", 1.0, "fail", floor=1.0, undecided="inconclusive"),
    Metric("energy", "J/call", "per_worker", 0.10, "info"),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})
