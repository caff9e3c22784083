"""NVBench: the file of ``--json``, whose layout is of version 1 (``meta.version.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from perfci.history.importers import ForeignResults, RunBuilder, case_id, environment_of
from perfci.model.case import Direction

TOOL = "nvbench"
COMPANIONS = ()
_SUMMARIES: Mapping[str, tuple[str, str, Direction]] = {
    "nv/cold/time/gpu/mean": ("device_time_mean", "s", "lower"),
    "nv/cold/time/gpu/median": ("device_time_p50", "s", "lower"),
    "nv/cold/time/cpu/mean": ("latency_mean", "s", "lower"),
    "nv/cold/time/cpu/median": ("latency_p50", "s", "lower"),
    "nv/cpu_only/time/cpu/mean": ("latency_mean", "s", "lower"),
    "nv/cpu_only/time/cpu/median": ("latency_p50", "s", "lower"),
    "nv/batch/time/gpu/mean": ("batch_device_time_mean", "s", "lower"),
    "nv/cold/bw/global/bytes_per_second": ("bytes_per_second", "bytes/s", "higher"),
    "nv/cpu_only/bw/global/bytes_per_second": ("bytes_per_second", "bytes/s", "higher"),
    "nv/cold/bw/item_rate": ("throughput", "items/s", "higher"),
    "nv/cpu_only/bw/item_rate": ("throughput", "items/s", "higher"),
}
"""Metric, unit and direction of each summary that is read, by its tag. The other summaries (noise,
sample counts, wall times) describe the measurement."""


@dataclass(frozen=True, slots=True)
class _NamedValue:
    name: str
    value: str | float | None = None


@dataclass(frozen=True, slots=True)
class _Summary:
    tag: str
    data: list[_NamedValue] | None = None


@dataclass(frozen=True, slots=True)
class _State:
    name: str = ""
    device: int | None = None
    axis_values: list[_NamedValue] | None = None
    summaries: list[_Summary] | None = None
    is_skipped: bool = False
    skip_reason: str = ""


@dataclass(frozen=True, slots=True)
class _NvbenchBenchmark:
    name: str
    states: list[_State] | None = None


@dataclass(frozen=True, slots=True)
class _NvbenchFile:
    meta: dict[str, Any]
    benchmarks: list[_NvbenchBenchmark]
    devices: list[dict[str, Any]] | None = None


def recognised(plain: Any) -> bool:
    """Return whether ``plain`` is a file of NVBench."""
    meta = plain.get("meta") if isinstance(plain, dict) and "benchmarks" in plain else None
    version = meta.get("version") if isinstance(meta, dict) else None
    return isinstance(version, dict) and "nvbench" in version


def read(plain: Any, builder: RunBuilder) -> ForeignResults:
    """Return the run of a file, which doesn't say when it was measured."""
    file = builder.fill(plain, _NvbenchFile)
    devices = {device.get("id"): str(device.get("name")) for device in file.devices or ()}
    for benchmark in file.benchmarks:
        for state in benchmark.states or ():
            several = {"device": str(state.device)} if len(devices) > 1 else {}
            axes = {axis.name: str(axis.value) for axis in state.axis_values or ()}
            _add(builder, case_id(benchmark.name, axes | several), state)
    facts = {"device_name": ", ".join(dict.fromkeys(devices.values())) or "cpu"}
    environment = environment_of(TOOL, (facts["device_name"],), facts, {})
    return builder.results(environment, measured_at="")


def _add(builder: RunBuilder, case: str, state: _State) -> None:
    if state.is_skipped:
        builder.fail(case, f"it was skipped: {state.skip_reason}")
        return
    for summary in state.summaries or ():
        known = _SUMMARIES.get(summary.tag)
        if known is None:
            continue
        metric, unit, direction = known
        values = [entry.value for entry in summary.data or () if entry.name == "value"]
        builder.add_point(case, metric, unit, _number(next(iter(values), None)), direction)


def _number(value: str | float | None) -> float | None:
    """Return a value, which NVBench writes as text so that no digit is lost."""
    try:
        return msgspec.convert(value, type=float, strict=False)
    except msgspec.ValidationError:
        return None
