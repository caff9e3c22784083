"""Google Benchmark: the file of ``--benchmark_out`` (or ``--benchmark_format=json``).

Repetitions are of one process, so they are one worker; their median stands for them. Of aggregates
the median is read, or the mean, and only where the repetitions themselves are not in the file.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from perfci.history.importers.document import explained, fill
from perfci.history.importers.gathering import (
    Foreign,
    Gathering,
    case_id,
    environment_of,
    metric_name,
    sha_of,
)
from perfci.model.case import Direction
from perfci.model.run import Environment

TOOL = "google-benchmark"
COMPANIONS: Mapping[str, Callable[[Any, str], Any]] = {}
_A_SECOND = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
_OLD_AGGREGATE = re.compile(r"(?P<run>.+)_(?P<kind>mean|median|stddev|cv|BigO|RMS)")
_NO_COUNTERS = {
    "name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions",
    "repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit",
    "aggregate_name", "aggregate_unit", "error_occurred", "error_message", "skipped",
    "skip_message", "label", "cpu_coefficient", "real_coefficient", "big_o", "rms",
}  # fmt: skip
_COUNTERS: Mapping[str, tuple[str, str, Direction]] = {
    "items_per_second": ("throughput", "items/s", "higher"),
    "bytes_per_second": ("bytes_per_second", "bytes/s", "higher"),
    "max_bytes_used": ("max_bytes_used", "bytes", "lower"),
    "allocs_per_iter": ("allocs_per_iter", "count", "lower"),
}
_COMMITS = ("git_commit", "git_sha", "git_hash", "commit", "commit_hash", "sha", "revision")
_OWN_CONTEXT = {
    "date", "host_name", "executable", "num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "caches",
    "load_avg", "library_version", "library_build_type", "json_schema_version", "aslr_enabled",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    run_name: str = ""
    run_type: str = ""
    aggregate_name: str = ""
    real_time: float | None = None
    cpu_time: float | None = None
    time_unit: str = "ns"
    error_occurred: bool = False
    error_message: str = ""
    skipped: bool = False
    skip_message: str = ""
    counters: dict[str, float] = field(default_factory=dict)

    @property
    def trouble(self) -> str:
        """Why it has no result; empty where it has one."""
        if self.error_occurred:
            return self.error_message or "it failed"
        return (self.skip_message or "it was skipped") if self.skipped else ""


@dataclass(frozen=True, slots=True)
class _File:
    context: dict[str, Any]
    benchmarks: list[Any]


def recognised(plain: Any) -> bool:
    """Return whether this is such a file."""
    if not isinstance(plain, dict) or not {"context", "benchmarks"} <= plain.keys():
        return False
    context = plain["context"]
    return isinstance(context, dict) and bool({"num_cpus", "library_build_type"} & context.keys())


def read(plain: Any, name: str, beside: Callable[[str], Any]) -> Foreign:  # noqa: ARG001 (no companions)
    """Return the one run of a file."""
    file = fill(plain, _File, name, TOOL)
    gathering = Gathering(TOOL)
    groups: dict[str, list[_Entry]] = {}
    names = {str(one.get("name")) for one in file.benchmarks if isinstance(one, dict)}
    for number, one in enumerate(file.benchmarks, 1):
        try:
            entry = _entry(one, names)
        except msgspec.ValidationError as error:
            gathering.skip(f"entry {number}", explained(error))
            continue
        groups.setdefault(entry.run_name, []).append(entry)
    program = _program(file.context)
    for run_name, entries in groups.items():
        _gather(gathering, _case(program, run_name), entries)
    context = file.context
    if context.get("library_build_type") == "debug":
        gathering.notes.append("its library was built for debugging: times may be too long")
    run = gathering.run(
        _environment(context),
        measured_at=gathering.time(context.get("date")),
        sha=next(filter(None, (sha_of(context.get(key)) for key in _COMMITS)), ""),
        runner=str(context.get("host_name") or ""),
    )
    return gathering.foreign(run)


def _entry(one: Any, names: set[str]) -> _Entry:
    """Return an entry as today's layout has it; before 1.4 only names marked aggregates."""
    plain = dict(one) if isinstance(one, dict) else one
    if isinstance(plain, dict):
        plain["counters"] = {
            key: value
            for key, value in plain.items()
            if key not in _NO_COUNTERS
            and isinstance(value, (int, float))
            and not isinstance(value, bool)
        }
        old = _OLD_AGGREGATE.fullmatch(str(plain.get("name")))
        if "run_type" not in plain and old and _is_aggregate(old, names):
            plain |= {
                "run_type": "aggregate",
                "aggregate_name": old["kind"],
                "run_name": old["run"],
            }
        plain["run_name"] = plain.get("run_name") or plain.get("name")
    return msgspec.convert(plain, type=_Entry)


def _is_aggregate(old: re.Match[str], names: set[str]) -> bool:
    """A benchmark may be called ``x_mean``; an aggregate has the others of its kind beside it."""
    return {old["run"], f"{old['run']}_stddev", f"{old['run']}_RMS"} & names != set()


def _gather(gathering: Gathering, case: str, entries: Sequence[_Entry]) -> None:
    troubles = [entry.trouble for entry in entries if entry.trouble]
    taken = _taken([entry for entry in entries if not entry.trouble])
    if not taken:
        if troubles:
            gathering.fail(case, troubles[0])
        else:  # a fit of the complexity, and how good it is
            gathering.skip(case, "it has neither repetitions nor a median or mean")
        return
    if troubles:
        gathering.skip(case, f"{len(troubles)} of its repetitions failed: {troubles[0]}")
    scale = _A_SECOND.get(taken[0].time_unit)
    if scale is None or len({entry.time_unit for entry in taken}) > 1:
        gathering.skip(case, f"its time unit is not known: {taken[0].time_unit}")
        return
    _point(gathering, case, "latency_mean", "s", [_scaled(one.real_time, scale) for one in taken])
    _point(gathering, case, "cpu_time", "s", [_scaled(one.cpu_time, scale) for one in taken])
    for counter in dict.fromkeys(name for entry in taken for name in entry.counters):
        metric, unit, direction = _COUNTERS.get(counter, (metric_name(counter), "", "lower"))
        if counter not in _COUNTERS:
            gathering.notes.append(
                f"no file says which way counter {metric} is better: lower is taken"
            )
        values = [entry.counters.get(counter) for entry in taken]
        _point(gathering, case, metric, unit, values, direction)


def _taken(entries: Sequence[_Entry]) -> Sequence[_Entry]:
    """Return the repetitions, or the one aggregate that stands for them."""
    for wanted in ("", "median", "mean"):
        found = [entry for entry in entries if entry.aggregate_name == wanted]
        if found:
            return found
    return ()


def _point(
    gathering: Gathering,
    case: str,
    metric: str,
    unit: str,
    values: Sequence[float | None],
    direction: Direction = "lower",
) -> None:
    given = [value for value in values if value is not None]
    if len(given) < len(values):
        gathering.skip(f"{case} {metric}", "its value is no finite number")
        return
    centre = statistics.median(given)
    gathering.point(case, metric, unit, centre, (centre,), direction)


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value / scale


def _case(program: str, run_name: str) -> str:
    """``BM_copy/8/threads:2`` of ``sorting`` becomes ``sorting::BM_copy[arg1=8,threads=2]``."""
    name: list[str] = []
    axes: dict[str, str] = {}
    for part in _parts(run_name):
        key, colon, value = part.partition(":")
        if name and colon and key.isidentifier() and not value.startswith(":") and key not in axes:
            axes[key] = value
        elif name and part.lstrip("-").isdigit():
            axes[f"arg{len(axes) + 1}"] = part
        else:
            name.append(part)
    return case_id("::".join(filter(None, (program, "/".join(name)))), axes)


def _parts(run_name: str) -> list[str]:
    """Split at each ``/`` that is in no template's brackets."""
    parts, depth = [""], 0
    for character in run_name:
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "/" and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _program(context: Mapping[str, Any]) -> str:
    path = context.get("executable")
    last = re.split(r"[/\\]", path)[-1] if isinstance(path, str) else ""
    return last.removesuffix(".exe")


def _environment(context: Mapping[str, Any]) -> Environment:
    """No CPU is named. Its caches distinguish most; its frequency differs each time."""
    deciding = {
        "cpu_count": context.get("num_cpus"),
        "caches": _caches(context.get("caches")),
        "build": context.get("library_build_type"),
    }
    notes = {key: value for key, value in context.items() if key not in _OWN_CONTEXT}
    noted = ("library_version", "cpu_scaling_enabled", "mhz_per_cpu")
    notes |= {key: context.get(key) for key in noted}
    title = (f"{context.get('num_cpus', 0)}_cpus", context.get("library_build_type"))
    return environment_of(TOOL, title, deciding, notes)


def _caches(caches: Any) -> str:
    each = caches if isinstance(caches, list) else []
    return " ".join(str(one.get("size")) for one in each if isinstance(one, dict))
