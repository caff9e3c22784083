"""pyperf: one benchmark or a suite, of formats 5 (perf 0.8), 6 (perf 0.9) and 1.0.

A pyperf run is one process, which perfci calls a worker. Calibration runs have no values, and
warm-up values are listed separately. Both are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from perfci.errors import DamagedFile
from perfci.history.foreign import (
    ForeignResults,
    RunBuilder,
    case_id,
    fill,
    python_environment,
    sha_of,
    visible,
)
from perfci.model.run import Environment, RecordedRun

TOOL = "pyperf"
COMPANIONS: Mapping[str, Callable[[Any, str], Any]] = {}
_FORMATS = {5, 6, "1.0"}
_METRICS = {
    "second": ("latency_mean", "s"),
    "byte": ("peak_host_memory", "bytes"),
    "integer": ("value", ""),
}
_NOTES = (
    "aslr", "cpu_affinity", "cpu_config", "description", "inner_loops", "perf_version",
    "performance_version", "platform", "python_compiler", "python_version", "timer",
)  # fmt: skip
"""Metadata that is noted for readers and doesn't decide the environment."""
_MACHINES = {"x86_64", "AMD64", "i686", "aarch64", "arm64", "ppc64le", "s390x", "riscv64"}
"""Machine types, to find the one in a platform's name."""
_LARGEST = 1e200
"""Largest value that is read: sums of larger values could overflow."""


@dataclass(frozen=True, slots=True)
class _PyperfRun:
    values: list[float] = field(default_factory=list)
    samples: list[float] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _PyperfBenchmark:
    runs: list[_PyperfRun]
    metadata: dict[str, Any] = field(default_factory=dict)
    common_metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _PyperfFile:
    benchmarks: list[Any]
    version: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)


def recognised(plain: Any) -> bool:
    """Return whether ``plain`` is a list of benchmarks, each with its runs."""
    benchmarks = plain.get("benchmarks") if isinstance(plain, dict) else None
    if not isinstance(benchmarks, list) or "version" not in plain:
        return False
    return all(isinstance(item, dict) and "runs" in item for item in benchmarks)


def read(plain: Any, name: str, _companion: Callable[[str], Any]) -> ForeignResults:
    """Return one run for each machine, Python and commit of the file's benchmarks."""
    file = fill(plain, _PyperfFile, name, TOOL)
    if not isinstance(file.version, (str, int)) or file.version not in _FORMATS:
        raise DamagedFile(
            "foreign-layout",
            f"{visible(name, 300)} is of pyperf's format {visible(str(file.version), 40)}; "
            "formats 5, 6 and 1.0 are known",
            "Let pyperf 2 write it again: python -m pyperf convert OLD -o NEW",
        )
    unreadable = RunBuilder(TOOL)
    groups: dict[str, _PyperfGroup] = {}
    read_benchmark = partial(msgspec.convert, type=_PyperfBenchmark)
    for number, benchmark in unreadable.entries(file.benchmarks, read_benchmark):
        about = file.metadata | benchmark.common_metadata | benchmark.metadata
        for run in benchmark.runs:  # facts of single processes don't describe the machine
            about = run.metadata | about
        key = f"{_environment(about).key} {about.get('hostname')} {about.get('commit_id')}"
        group = groups.setdefault(key, _PyperfGroup(about))
        _add(group.builder, benchmark, about, number)
        dates = (run.metadata.get("date", about.get("date")) for run in benchmark.runs)
        group.dates += filter(None, map(group.builder.time, dates))
    builders = (unreadable, *(group.builder for group in groups.values()))
    return ForeignResults(
        TOOL,
        tuple(map(_run, groups.values())),
        tuple(skipped for builder in builders for skipped in builder.skipped),
        tuple(dict.fromkeys(note for builder in builders for note in builder.notes)),
    )


@dataclass(slots=True)
class _PyperfGroup:
    """Benchmarks of one machine, Python and commit. ``about`` is the first one's metadata."""

    about: Mapping[str, Any]
    builder: RunBuilder = field(default_factory=lambda: RunBuilder(TOOL))
    dates: list[str] = field(default_factory=list)


def _run(group: _PyperfGroup) -> RecordedRun:
    about = group.about
    return group.builder.run(
        _environment(about),
        measured_at=min(group.dates, default=""),
        sha=sha_of(about.get("commit_id")),
        branch=str(about.get("commit_branch") or ""),
        committed_at=group.builder.time(about.get("commit_date")),
        runner=str(about.get("hostname") or ""),
    )


def _add(
    builder: RunBuilder, benchmark: _PyperfBenchmark, about: Mapping[str, Any], number: int
) -> None:
    name = about.get("name")
    if not isinstance(name, str) or not name.strip():
        builder.skip(f"benchmark {number}", "it has no name")
        return
    metric, unit = _METRICS.get(str(about.get("unit") or "second"), ("", ""))
    if not metric:
        builder.skip(name, f"its unit is not known: {about.get('unit')}")
        return
    processes = [values for run in benchmark.runs if (values := run.values or run.samples)]
    if not processes:
        builder.fail(case_id(name), "it has no values, only calibration")
        return
    all_values = [value for values in processes for value in values]
    if not all(abs(value) < _LARGEST for value in all_values):
        builder.skip(name, "one of its values is no number that can be")
        return
    means = [math.fsum(values) / len(values) for values in processes]
    centre = math.fsum(all_values) / len(all_values)  # as `pyperf stats` shows it
    builder.add_point(case_id(name), metric, unit, centre, means)


def _environment(about: Mapping[str, Any]) -> Environment:
    parts = str(about.get("platform") or "").split("-")
    return python_environment(
        TOOL,
        system=parts[0],
        machine=next((part for part in parts if part in _MACHINES), ""),
        cpu=about.get("cpu_model_name"),
        cpu_count=about.get("cpu_count"),
        implementation=about.get("python_implementation"),
        version=str(about.get("python_version") or "").split(" ")[0],
        notes={name: about[name] for name in _NOTES if name in about},
    )
