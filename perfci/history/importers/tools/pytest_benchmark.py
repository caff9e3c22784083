"""pytest-benchmark: the file of ``--benchmark-json`` or ``--benchmark-save``, since its 3.0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from perfci.history.importers.document import explained, fill
from perfci.history.importers.gathering import Foreign, Gathering, case_id, environment_of, sha_of
from perfci.model.run import Environment

TOOL = "pytest-benchmark"
COMPANIONS: Mapping[str, Callable[[Any, str], Any]] = {}
_METRICS = {"median": "latency_p50", "mean": "latency_mean", "min": "latency_min"}
_NO_BRANCH = {"(unknown)", "(detached head)", "HEAD"}
_NO_VALUE = "UNSERIALIZABLE["
"""How it writes a parameter that is no JSON; what follows may hold an address in memory."""


@dataclass(frozen=True, slots=True)
class _Benchmark:
    name: str
    fullname: str | None = None
    params: dict[str, Any] | None = None
    param: Any = None
    stats: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Commit:
    id: Any = None
    time: str | None = None
    dirty: bool = False
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class _File:
    machine_info: dict[str, Any]
    benchmarks: list[Any]
    commit_info: _Commit | None = None
    datetime: str | None = None
    version: str | None = None


def recognised(plain: Any) -> bool:
    """Return whether this is such a file."""
    return isinstance(plain, dict) and {"machine_info", "benchmarks"} <= plain.keys()


def read(plain: Any, name: str, beside: Callable[[str], Any]) -> Foreign:  # noqa: ARG001 (no companions)
    """Return the one run of a file."""
    file = fill(plain, _File, name, TOOL)
    gathering = Gathering(TOOL)
    for number, one in enumerate(file.benchmarks, 1):
        try:
            _gather(gathering, msgspec.convert(one, type=_Benchmark))
        except msgspec.ValidationError as error:
            gathering.skip(f"benchmark {number}", explained(error))
    commit = file.commit_info or _Commit()
    if commit.dirty:
        gathering.notes.append("there were changes that no commit holds when it was measured")
    run = gathering.run(
        _environment(file, dirty=commit.dirty),
        measured_at=gathering.time(file.datetime) or gathering.time(commit.time),
        sha=sha_of(commit.id),
        branch="" if commit.branch in _NO_BRANCH else commit.branch or "",
        committed_at=gathering.time(commit.time),
        runner=str(file.machine_info.get("node") or ""),
    )
    return gathering.foreign(run)


def _gather(gathering: Gathering, one: _Benchmark) -> None:
    case = _case(one)
    stats = one.stats or {}
    if not isinstance(stats.get("median"), (int, float)):
        gathering.fail(case, "it has no statistics: it failed")
        return
    for statistic, metric in _METRICS.items():
        value = stats.get(statistic)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            # one process made the file: one worker
            gathering.point(case, metric, "s", value, (value,))


def _case(one: _Benchmark) -> str:
    """Return ``file::test[axis=value]``; the id in brackets stands for what is no plain value."""
    whole = one.fullname or one.name
    name, bracket, rest = whole.partition("[")
    if not bracket or not rest.endswith("]"):
        return case_id(whole)
    params = one.params or {}
    if params and all(map(_is_label, params.values())):
        return case_id(name, {axis: str(value) for axis, value in params.items()})
    return case_id(name, {"param": str(one.param or rest[:-1])})


def _is_label(value: Any) -> bool:
    if isinstance(value, str):
        return not value.startswith(_NO_VALUE)
    return value is None or isinstance(value, (int, float))


def _environment(file: _File, *, dirty: bool) -> Environment:
    info = file.machine_info
    cpu = info.get("cpu")
    about: Mapping[str, Any] = cpu if isinstance(cpu, dict) else {}
    python = str(info.get("python_version") or "")
    deciding = {
        "system": str(info.get("system") or "").lower(),
        "machine": info.get("machine"),
        "cpu": about.get("brand_raw") or about.get("brand") or info.get("processor"),
        "cpu_count": about.get("count"),
        "implementation": info.get("python_implementation"),
        "python": ".".join(python.split(".")[:2]),
    }
    notes = {
        "python": python,
        "python_compiler": info.get("python_compiler"),
        "release": info.get("release"),
        "tool_version": file.version,
        "dirty": "true" if dirty else "",
    }
    title = (deciding["system"], deciding["machine"], f"py{deciding['python']}")
    return environment_of(TOOL, title, deciding, notes)
