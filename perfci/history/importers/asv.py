"""asv: a file of results in layout 2, which asv writes since 0.4.2, with its companion files."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from perfci.history.importers import (
    ForeignResults,
    RunBuilder,
    case_id,
    environment_of,
    sha_of,
    visible,
)
from perfci.model.run import Environment
from perfci.units import NoTime, from_seconds

TOOL = "asv"
COMPANIONS = ("benchmarks.json", "machine.json")
_MOST_COMBINATIONS = 100_000
"""A benchmark with more combinations of parameters is skipped."""
_KINDS = (
    (re.compile(r"time(raw)?_|Time[A-Z_]"), "time"),
    (re.compile(r"mem_|Mem[A-Z_]"), "memory"),
    (re.compile(r"peakmem_|PeakMem[A-Z_]"), "peakmemory"),
)
"""asv's rules for a benchmark's type by the last part of its name."""
_METRICS = {
    "time": ("latency_p50", "s"),  # asv's result is the median of its samples
    "memory": ("object_size", "bytes"),
    "peakmemory": ("peak_host_memory", "bytes"),
}
_UNITS = {"seconds": "s", "second": "s", "unit": "", "bytes": "bytes"}


@dataclass(frozen=True, slots=True)
class _AsvBenchmark:
    """Description of a benchmark in ``benchmarks.json``."""

    type: str | None = None
    unit: str | None = None
    param_names: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _AsvFile:
    commit_hash: str
    results: dict[str, Any]
    result_columns: list[str]
    date: float | None = None
    env_name: str = ""
    python: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    requirements: dict[str, Any] = field(default_factory=dict)
    env_vars: dict[str, Any] = field(default_factory=dict)
    version: int | None = None


@dataclass(frozen=True, slots=True)
class _AsvResult:
    """Results of a benchmark, one per combination of ``params``. The last varies fastest."""

    result: list[float | None] | None = None
    params: list[list[str]] = field(default_factory=list)
    version: str | None = None
    started_at: float | None = None


def recognised(plain: Any) -> bool:
    """Return whether ``plain`` is a file of asv's results."""
    return isinstance(plain, dict) and {"commit_hash", "results"} <= plain.keys()


def read(plain: Any, builder: RunBuilder) -> ForeignResults:
    """Return the run of a file. asv's companion files name its axes and units."""
    described = builder.companion("benchmarks.json")
    machine = builder.companion("machine.json")
    benchmarks = described if isinstance(described, dict) else {}
    file = builder.fill(plain, _AsvFile)
    if described is None:
        builder.notes.append(
            "asv's benchmarks.json was not given: axes are called param1, param2, …, and a "
            "benchmark's name decides its metric (give the whole results folder)"
        )
    started = []
    for benchmark, value in file.results.items():
        try:
            row = dict(zip(file.result_columns, msgspec.convert(value, list[Any]), strict=False))
            known = {key: entry for key, entry in row.items() if entry is not None}
            result = msgspec.convert(known, type=_AsvResult)
            about = msgspec.convert(benchmarks.get(benchmark, {}), type=_AsvBenchmark)
        except msgspec.ValidationError as error:
            builder.skip(benchmark, str(error))
            continue
        _add(builder, benchmark, result, about)
        started += [result.started_at] if result.started_at else []
    committed_at = _time(file.date)
    return builder.results(
        _environment(file, machine if isinstance(machine, dict) else {}),
        measured_at=_time(min(started, default=None)) or committed_at,
        sha=sha_of(file.commit_hash),
        committed_at=committed_at,
        runner=str(file.params.get("machine") or ""),
    )


def _add(builder: RunBuilder, benchmark: str, result: _AsvResult, described: _AsvBenchmark) -> None:
    combinations = math.prod(len(values) for values in result.params)
    if combinations > _MOST_COMBINATIONS:
        builder.skip(benchmark, f"{combinations:,} combinations of parameters")
        return
    values = result.result if result.result is not None else [None] * combinations
    if len(values) != combinations:
        builder.skip(benchmark, f"{len(values)} results for {combinations} combinations")
        return
    metric, unit = _metric(benchmark, described)
    left_out = 0
    cases = _cases(benchmark, tuple(described.param_names), tuple(map(tuple, result.params)))
    for case, value in zip(cases, values, strict=False):
        if value is not None and math.isnan(value):
            left_out += 1  # its author skips this combination: that isn't a failure
            continue
        if value is None:
            builder.fail(case, "it failed in asv, or took too long")
        else:
            builder.add_point(case, metric, unit, value, source_hash=result.version or "")
    if left_out:
        of = f"{left_out} of its {combinations} combinations" if combinations > 1 else "it"
        builder.skip(benchmark, f"asv skipped {of}")


def _cases(
    benchmark: str, names: tuple[str, ...], params: tuple[tuple[str, ...], ...]
) -> tuple[str, ...]:
    """Return the case of each combination of ``params``. The last varies fastest."""
    if len(names) != len(params) or len(set(names)) != len(names):
        names = tuple(f"param{number}" for number in range(1, len(params) + 1))
    points = itertools.product(*params)
    return tuple(case_id(benchmark, dict(zip(names, point, strict=True))) for point in points)


def _metric(benchmark: str, described: _AsvBenchmark) -> tuple[str, str]:
    last = benchmark.rpartition(".")[2]
    by_name = next((kind for pattern, kind in _KINDS if pattern.match(last)), "track")
    unit = visible(described.unit or "", 30)
    return _METRICS.get(described.type or by_name, ("value", _UNITS.get(unit, unit)))


def _environment(file: _AsvFile, machine: Mapping[str, Any]) -> Environment:
    """Return the environment by asv's own rule: different ``params`` make different series."""
    deciding = dict(machine) | file.params
    deciding |= {f"env_{name}": value for name, value in file.env_vars.items()}
    deciding |= {f"requires_{name}": value or "any" for name, value in file.requirements.items()}
    deciding |= {"python": file.python or "", "env_name": file.env_name}
    deciding.pop("version", None)
    title = (file.params.get("machine"), file.env_name or f"py{file.python}")
    return environment_of(TOOL, title, deciding, {"layout": file.version})


def _time(milliseconds: float | None) -> str:
    try:
        return from_seconds(milliseconds / 1000) if milliseconds is not None else ""
    except NoTime:
        return ""
