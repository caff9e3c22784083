"""pytest-benchmark: the file of ``--benchmark-json`` or ``--benchmark-save``, since its 3.0."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from perfci.history.importers import ForeignResults, RunBuilder, case_id, environment_of, sha_of
from perfci.model.run import Environment

TOOL = "pytest-benchmark"
COMPANIONS = ()
_METRICS = {"median": "latency_p50", "mean": "latency_mean", "min": "latency_min"}
_NO_BRANCH = {"(unknown)", "(detached head)", "HEAD"}
_NO_VALUE = "UNSERIALIZABLE["
"""How a parameter begins that JSON can't hold. An address in memory may follow."""


@dataclass(frozen=True, slots=True)
class _PytestBenchmark:
    fullname: str
    params: dict[str, Any] | None = None
    param: Any = None
    stats: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _PytestCommit:
    id: Any = None
    time: str | None = None
    dirty: bool = False
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class _PytestFile:
    machine_info: dict[str, Any]
    benchmarks: list[Any]
    commit_info: _PytestCommit | None = None
    datetime: str | None = None
    version: str | None = None


def recognised(plain: Any) -> bool:
    """Return whether ``plain`` is a file of pytest-benchmark."""
    return isinstance(plain, dict) and {"machine_info", "benchmarks"} <= plain.keys()


def read(plain: Any, builder: RunBuilder) -> ForeignResults:
    """Return the run of a file."""
    file = builder.fill(plain, _PytestFile)
    for benchmark in builder.entries(
        file.benchmarks, partial(msgspec.convert, type=_PytestBenchmark)
    ):
        _add(builder, benchmark)
    commit = file.commit_info or _PytestCommit()
    if commit.dirty:
        builder.notes.append("there were changes that no commit holds when it was measured")
    return builder.results(
        _environment(file, dirty=commit.dirty),
        measured_at=builder.time(file.datetime) or builder.time(commit.time),
        sha=sha_of(commit.id),
        branch="" if commit.branch in _NO_BRANCH else commit.branch or "",
        committed_at=builder.time(commit.time),
        runner=str(file.machine_info.get("node") or ""),
    )


def _add(builder: RunBuilder, benchmark: _PytestBenchmark) -> None:
    case = _case(benchmark)
    stats = benchmark.stats or {}
    if not isinstance(stats.get("median"), (int, float)):
        builder.fail(case, "it failed: its statistics are missing")
        return
    for statistic, metric in _METRICS.items():
        value = stats.get(statistic)
        if isinstance(value, (int, float)):
            builder.add_point(case, metric, "s", value)


def _case(benchmark: _PytestBenchmark) -> str:
    """Return ``file::test[axis=value]``. If a value isn't plain, the test's own id is kept."""
    name, bracket, rest = benchmark.fullname.partition("[")
    if not bracket or not rest.endswith("]"):
        return case_id(benchmark.fullname)
    params = benchmark.params or {}
    if params and all(map(_is_label, params.values())):
        return case_id(name, {axis: str(value) for axis, value in params.items()})
    return case_id(name, {"param": str(benchmark.param or rest[:-1])})


def _is_label(value: Any) -> bool:
    if isinstance(value, str):
        return not value.startswith(_NO_VALUE)
    return value is None or isinstance(value, (int, float))


def _environment(file: _PytestFile, *, dirty: bool) -> Environment:
    """Return the environment. Patch releases of Python share one key."""
    info = file.machine_info
    cpu = info["cpu"] if isinstance(info.get("cpu"), dict) else {}
    python = str(info.get("python_version") or "")
    deciding = {
        "system": str(info.get("system") or "").lower(),
        "machine": info.get("machine"),
        "cpu": cpu.get("brand_raw") or cpu.get("brand") or info.get("processor"),
        "cpu_count": cpu.get("count"),
        "implementation": info.get("python_implementation"),
        "python": ".".join(python.split(".")[:2]),
    }
    notes = {
        "python": python,
        "release": info.get("release"),
        "tool_version": file.version,
        "dirty": "true" if dirty else "",
    }
    title = (deciding["system"], deciding["machine"], f"py{deciding['python']}")
    return environment_of(TOOL, title, deciding, notes)
