"""pyperf: one benchmark or a suite, of formats 5 (perf 0.8), 6 (perf 0.9) and 1.0.

A pyperf run is one process, which is perfci's worker. Runs that calibrate have no values; values
that warm up are listed separately; both are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from perfci.errors import DamagedFile
from perfci.history.importers.document import explained, fill
from perfci.history.importers.gathering import (
    Foreign,
    Gathering,
    case_id,
    environment_of,
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

_LARGEST = 1e200
"""Sums of larger ones overflow."""


@dataclass(frozen=True, slots=True)
class _Run:
    values: list[float] = field(default_factory=list)
    samples: list[float] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Benchmark:
    runs: list[_Run]
    metadata: dict[str, Any] = field(default_factory=dict)
    common_metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _File:
    benchmarks: list[Any]
    version: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)


def recognised(plain: Any) -> bool:
    """Return whether this is such a file: a list of benchmarks, each with its runs."""
    benchmarks = plain.get("benchmarks") if isinstance(plain, dict) else None
    if not isinstance(benchmarks, list) or "version" not in plain:
        return False
    return all(isinstance(one, dict) and "runs" in one for one in benchmarks)


def read(plain: Any, name: str, beside: Callable[[str], Any]) -> Foreign:  # noqa: ARG001 (no companions)
    """Return a run for each machine and Python that the file's benchmarks were measured on."""
    file = fill(plain, _File, name, TOOL)
    if not isinstance(file.version, (str, int)) or file.version not in _FORMATS:
        raise DamagedFile(
            "foreign-layout",
            f"{visible(name, 300)} is of pyperf's format {visible(str(file.version), 40)}; "
            "formats 5, 6 and 1.0 are known",
            "Let pyperf 2 write it again: python -m pyperf convert OLD -o NEW",
        )
    broken = Gathering(TOOL)
    groups: dict[str, _Group] = {}
    for number, one in enumerate(file.benchmarks, 1):
        try:
            benchmark = msgspec.convert(one, type=_Benchmark)
        except msgspec.ValidationError as error:
            broken.skip(f"benchmark {number}", explained(error))
            continue
        about = file.metadata | benchmark.common_metadata | benchmark.metadata
        for run in benchmark.runs:  # what differs between processes says nothing of the machine
            about = run.metadata | about
        key = f"{_environment(about).key} {about.get('hostname')} {about.get('commit_id')}"
        group = groups.setdefault(key, _Group(about))
        _gather(group.gathering, benchmark, about, number)
        dates = (run.metadata.get("date", about.get("date")) for run in benchmark.runs)
        group.dates += filter(None, map(group.gathering.time, dates))
    every = (broken, *(group.gathering for group in groups.values()))
    return Foreign(
        TOOL,
        tuple(map(_run, groups.values())),
        tuple(one for gathering in every for one in gathering.skipped),
        tuple(dict.fromkeys(note for gathering in every for note in gathering.notes)),
    )


@dataclass(slots=True)
class _Group:
    """The benchmarks of one machine, Python and commit; ``about`` is what the first says."""

    about: Mapping[str, Any]
    gathering: Gathering = field(default_factory=lambda: Gathering(TOOL))
    dates: list[str] = field(default_factory=list)


def _run(group: _Group) -> RecordedRun:
    about = group.about
    return group.gathering.run(
        _environment(about),
        measured_at=min(group.dates, default=""),
        sha=sha_of(about.get("commit_id")),
        branch=str(about.get("commit_branch") or ""),
        committed_at=group.gathering.time(about.get("commit_date")),
        runner=str(about.get("hostname") or ""),
    )


def _gather(
    gathering: Gathering, benchmark: _Benchmark, about: Mapping[str, Any], number: int
) -> None:
    name = about.get("name")
    if not isinstance(name, str) or not name.strip():
        gathering.skip(f"benchmark {number}", "it has no name")
        return
    found = _METRICS.get(str(about.get("unit") or "second"))
    if found is None:
        gathering.skip(name, f"its unit is not known: {about.get('unit')}")
        return
    metric, unit = found
    every = [run.values or run.samples for run in benchmark.runs]
    processes = [values for values in every if values]
    if not processes:
        gathering.fail(case_id(name), "it has no values, only calibration")
        return
    all_values = [value for one in processes for value in one]
    if not all(abs(value) < _LARGEST for value in all_values):
        gathering.skip(name, "one of its values is no number that can be")
        return
    values = [math.fsum(one) / len(one) for one in processes]
    centre = math.fsum(all_values) / len(all_values)  # as `pyperf stats` shows it
    gathering.point(case_id(name), metric, unit, centre, values)


def _environment(about: Mapping[str, Any]) -> Environment:
    platform = str(about.get("platform") or "")
    parts = platform.split("-")
    python = str(about.get("python_version") or "").split(" ")[0]
    deciding = {
        "system": parts[0].lower(),
        "machine": next((part for part in parts if part in _MACHINES), ""),
        "cpu": about.get("cpu_model_name"),
        "cpu_count": about.get("cpu_count"),
        "implementation": about.get("python_implementation"),
        "python": ".".join(python.split(".")[:2]),
    }
    title = (deciding["system"], deciding["machine"], f"py{deciding['python']}")
    notes = {name: about[name] for name in _NOTES if name in about}
    return environment_of(TOOL, title, deciding, notes)


_MACHINES = {"x86_64", "AMD64", "i686", "aarch64", "arm64", "ppc64le", "s390x", "riscv64"}
