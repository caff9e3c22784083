"""Google Benchmark: the file of ``--benchmark_out`` (or ``--benchmark_format=json``).

The value of repetitions is their median. Aggregates are read only if the repetitions themselves are
not in the file: the median, or else the mean.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from perfci.history.importers import (
    ForeignResults,
    RunBuilder,
    case_id,
    environment_of,
    metric_name,
    sha_of,
)
from perfci.model.case import Direction
from perfci.model.run import Environment

TOOL = "google-benchmark"
COMPANIONS = ()
_UNITS_PER_SECOND = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
_RESERVED_KEYS = {
    "name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions",
    "repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit",
    "aggregate_name", "aggregate_unit", "error_occurred", "error_message", "skipped",
    "skip_message", "label", "cpu_coefficient", "real_coefficient", "big_o", "rms",
}  # fmt: skip
"""Keys of an entry that aren't counters: a user's counters have keys of their own."""
_COUNTERS: Mapping[str, tuple[str, str, Direction]] = {
    "items_per_second": ("throughput", "items/s", "higher"),
    "bytes_per_second": ("bytes_per_second", "bytes/s", "higher"),
    "max_bytes_used": ("max_bytes_used", "bytes", "lower"),
    "allocs_per_iter": ("allocs_per_iter", "count", "lower"),
}
"""Metric, unit and direction of the library's own counters."""
_TEXT = r'"(?:\\.|[^"\\])*"'
_VALUE = re.compile(
    rf"({_TEXT})|(:\s*)(?:[-+]?(?:nan|inf)[a-z]*(?:\([^)]*\))?"
    r"|(-?\d+(?:[.,]\d+)?(?:e[-+]?\d+)?)(\s*%)?)",
    re.IGNORECASE,
)
"""Matches a text, a value that is not a number, or a number, perhaps with a decimal comma or %."""
_NO_COMMA = re.compile(rf"({_TEXT}|[\w}}\]])\s+(?={_TEXT}\s*:)")
_COMMITS = ("git_commit", "git_sha", "git_hash", "commit", "commit_hash", "sha", "revision")
"""Keys under which users add the commit to the context."""


@dataclass(frozen=True, slots=True)
class _GoogleEntry:
    name: str
    run_name: str = ""
    aggregate_name: str = ""
    real_time: float = math.nan
    cpu_time: float = math.nan
    time_unit: Literal["ns", "us", "ms", "s"] = "ns"
    error_occurred: bool = False
    error_message: str = ""
    skipped: bool = False
    skip_message: str = ""
    counters: dict[str, float] = field(default_factory=dict)

    @property
    def trouble(self) -> str:
        """Return the reason why the entry has no result, or an empty string."""
        if self.error_occurred:
            return self.error_message or "it failed"
        return (self.skip_message or "it was skipped") if self.skipped else ""


@dataclass(frozen=True, slots=True)
class _GoogleFile:
    context: dict[str, Any]
    benchmarks: list[Any]


def mended(text: str) -> Any:
    """Return the file that the library's printer meant by ``text``, or None for any other text.

    It writes ``nan``, ``-inf`` and ``12%``, a locale's ``1,5``, and forgets a comma after a member.
    """

    def plain(match: re.Match[str]) -> str:
        text, colon, number, percent = match.groups()
        if text or (number and "," not in number and not percent):
            return match[0]
        value = float((number or "nan").replace(",", "."))
        return f"{colon}{value / 100 if percent else value!r}".replace("nan", "NaN")

    try:
        file = json.loads(_NO_COMMA.sub(r"\1, ", _VALUE.sub(plain, text)))
    except ValueError:
        return None
    return file if recognised(file) else None


def recognised(plain: Any) -> bool:
    """Return whether ``plain`` is a file of Google Benchmark."""
    if not isinstance(plain, dict) or not {"context", "benchmarks"} <= plain.keys():
        return False
    context = plain["context"]
    return isinstance(context, dict) and bool({"num_cpus", "library_build_type"} & context.keys())


def read(plain: Any, builder: RunBuilder) -> ForeignResults:
    """Return the run of a file."""
    file = builder.fill(plain, _GoogleFile)
    groups: dict[str, list[_GoogleEntry]] = {}
    for entry in builder.entries(file.benchmarks, _entry):
        groups.setdefault(entry.run_name, []).append(entry)
    program = _program(file.context)
    for run_name, entries in groups.items():
        _add_benchmark(builder, _case(program, run_name), entries)
    context = file.context
    if context.get("library_build_type") == "debug":
        builder.notes.append("its library was built for debugging: times may be too long")
    return builder.results(
        _environment(context),
        measured_at=builder.time(context.get("date")),
        sha=next(filter(None, (sha_of(context.get(key)) for key in _COMMITS)), ""),
        runner=str(context.get("host_name") or ""),
    )


def _entry(plain: Any) -> _GoogleEntry:
    if isinstance(plain, dict):
        counters = {
            key: value
            for key, value in plain.items()
            if key not in _RESERVED_KEYS
            and isinstance(value, (int, float))
            and not isinstance(value, bool)
        }
        plain = {"run_name": plain.get("name")} | plain | {"counters": counters}
    return msgspec.convert(plain, type=_GoogleEntry)


def _add_benchmark(builder: RunBuilder, case: str, entries: Sequence[_GoogleEntry]) -> None:
    troubles = [entry.trouble for entry in entries if entry.trouble]
    if troubles:
        builder.fail(case, troubles[0])
        return
    chosen = _representatives(entries)
    if not chosen:  # a fit of the complexity, or its error
        builder.skip(case, "it has neither repetitions nor a median or mean")
        return
    for metric, name in (("latency_mean", "real_time"), ("cpu_time", "cpu_time")):
        times = [getattr(entry, name) / _UNITS_PER_SECOND[entry.time_unit] for entry in chosen]
        _point(builder, case, metric, "s", times)
    for counter in dict.fromkeys(name for entry in chosen for name in entry.counters):
        metric, unit, direction = _COUNTERS.get(counter, (metric_name(counter), "", "lower"))
        if counter not in _COUNTERS:
            builder.notes.append(
                f"no file says which way counter {metric} is better: lower is taken"
            )
        values = [entry.counters.get(counter, math.nan) for entry in chosen]
        _point(builder, case, metric, unit, values, direction)


def _representatives(entries: Sequence[_GoogleEntry]) -> Sequence[_GoogleEntry]:
    """Return the repetitions, or else the median, or else the mean."""
    for name in ("", "median", "mean"):
        named = [entry for entry in entries if entry.aggregate_name == name]
        if named:
            return named
    return ()


def _point(
    builder: RunBuilder,
    case: str,
    metric: str,
    unit: str,
    values: Sequence[float],
    direction: Direction = "lower",
) -> None:
    centre = math.nan if any(map(math.isnan, values)) else statistics.median(values)
    builder.add_point(case, metric, unit, centre, direction)


def _case(program: str, run_name: str) -> str:
    """Return ``sorting::BM_copy[arg1=8,threads=2]`` for ``BM_copy/8/threads:2`` of ``sorting``."""
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
    """Split at each ``/`` outside a template's brackets."""
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
    """Return the environment. The file doesn't name the CPU, so the caches identify it."""
    deciding = {
        "cpu_count": context.get("num_cpus"),
        "caches": _caches(context.get("caches")),
        "build": context.get("library_build_type"),
    }
    notes = {key: context.get(key) for key in ("library_version", "cpu_scaling_enabled")}
    title = (f"{context.get('num_cpus', 0)}_cpus", context.get("library_build_type"))
    return environment_of(TOOL, title, deciding, notes)


def _caches(caches: Any) -> str:
    listed = caches if isinstance(caches, list) else []
    return " ".join(str(cache.get("size")) for cache in listed if isinstance(cache, dict))
