"""Every key of the configuration, with its type, bounds, default and meaning.

Files, ``--set`` and Python's keywords are read by these records (``loading``), and the JSON Schema
and the reference are made from them. Keys that decide are fields of ``verdict.policy.Policy``,
those of trends of ``trend.TrendSettings``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import UNSET, Meta, Struct, UnsetType

from perfci.model.case import NAME, Gate, Undecided
from perfci.model.measuring import DECIDING_ROUNDS, MOST_ROUNDS
from perfci.trend import TrendSettings
from perfci.units import parse_duration, parse_share
from perfci.values import NO_ZERO, NUMBER_OR_TEXT, TEXT, Text, Threshold, about, written
from perfci.verdict.acceptance import Acceptance
from perfci.verdict.policy import Policy

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?", re.IGNORECASE)
_PREFIXES = "KMGT"
MOST_BYTES = (1 << 63) - 1
"""Largest limit that the system takes."""
_END = r"$(?!\n)"
"""The end of the text. ``$`` alone would pass a newline there."""


def _inside(value: Any) -> str:
    """Read a path inside the repository. One outside would be the same for both sides."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(value)
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or "\0" in value:
        raise ValueError(value)
    return str(path)


def _duration(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(value)  # noqa: TRY004 (the caller takes it for a wrong value)
    return parse_duration(str(value))


def _size(value: Any) -> Any:
    """Read a text such as "8GiB". A number stays a number."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError(value)
    unit = match[2] or ""
    base = 1024 if unit.lower().endswith("i") else 1000
    power = _PREFIXES.index(unit[0].upper()) + 1 if unit else 0
    return round(min(float(match[1]), float(MOST_BYTES)) * base**power)


Environments = Literal["shared", "own"]
Residency = Literal["together", "alternate"]
FilePattern = Annotated[
    str,
    # not from the root, with a letter, and with `**` only as a whole folder, as in Python; a class
    # that isn't closed matches nothing, which would read as "no benchmarks"
    Meta(
        pattern=rf"^(?!/){NO_ZERO}(?=[\s\S]*[^\s/.])(?![\s\S]*([^/]\*\*|\*\*[^/]))"
        r"(?:[^\[]|\[!?[^\]]+\])*$"
    ),
    written('a pattern of file names, such as "bench_*.py" or "**/bench_*.py"'),
]
Name = Annotated[
    str,
    Meta(pattern=f"^{NAME.pattern}{_END}"),
    written("a name of letters, digits, `_`, `.` and `-`"),
]
Inside = Annotated[
    str,
    written(
        "a path inside the repository, relative to its root",
        _inside,
        pattern=rf"^(?!/){NO_ZERO}(?!([\s\S]*/)?\.\.(/|$))[\s\S]*\S",
    ),
]
Commands = Annotated[
    tuple[Annotated[str, Meta(pattern=TEXT)], ...], written("a list of texts, none of them empty")
]
Variables = Annotated[
    tuple[Annotated[str, Meta(pattern=f"^[A-Za-z_][A-Za-z0-9_]*{_END}")], ...],
    written('a list of names of environment variables, such as ["HF_HOME"]'),
]
Duration = Annotated[
    float,
    Meta(gt=0),
    written(
        'seconds above zero, or a text such as "90s", "2m30s" or "1h"',
        _duration,
        **NUMBER_OR_TEXT,
        pattern=r"^\s*([0-9.]+\s*[hH]\s*)?([0-9.]+\s*[mM]\s*)?([0-9.]+\s*[sS]\s*)?$|^\s*[0-9.]+\s*$",
    ),
]
Size = Annotated[
    int,
    Meta(ge=0, le=MOST_BYTES),
    written(
        'a number of bytes below 2⁶³, or a text such as "8GiB" or "500MB"',
        _size,
        type=["integer", "string"],
        pattern=r"^\s*[0-9]+(\.[0-9]+)?\s*([KMGTkmgt][iI]?)?[bB]?\s*$",
    ),
]


class QuietTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings that keep a worker undisturbed. They are part of the environment."""

    pin: Annotated[
        bool, about("Pin workers to cores of their own, the parent to others if possible.")
    ] = True
    malloc: Annotated[
        bool,
        about("Make glibc keep its pages, so that large tensors don't page-fault on each call."),
    ] = True
    hash_seed: Annotated[bool, about("Set `PYTHONHASHSEED` to 0.")] = True
    gc: Annotated[
        bool,
        about(
            "Collect Python's garbage before each burst, unless calls collect garbage themselves."
        ),
    ] = True
    threads: Annotated[bool, about("Set the number of threads (`OMP_NUM_THREADS` and so on).")] = (
        True
    )
    vec_isa: Annotated[bool, about("Spare Inductor a test of the CPU's vector instructions.")] = (
        True
    )
    fork: Annotated[bool, about("Fork workers from a process that has done their imports.")] = True


Injectable = Literal["latency", "cold_start", "compile_time", "peak_host_memory"]
"""Metrics that can be made worse on purpose, to test the gate."""
Injected = Annotated[
    float,
    Meta(gt=0, le=10),
    written(
        'a share above 0, such as "2%", and at most "1000%"',
        parse_share,
        **NUMBER_OR_TEXT,
        pattern=r"^\s*([0-9.]+\s*%|0?\.[0-9]+)\s*$",
    ),
]


class MetricTable(Struct, frozen=True, forbid_unknown_fields=True):
    """One metric's policy. A key that isn't set has the metric's own default."""

    threshold: (
        Annotated[
            Threshold, about("The change that is too much: a share of base, or an amount.", "3%")
        ]
        | UnsetType
    ) = UNSET
    gate: (
        Annotated[Gate, about("Whether a regression fails, warns, or is only shown.", "warn")]
        | UnsetType
    ) = UNSET
    undecided: (
        Annotated[Undecided, about("The verdict of an inconclusive comparison.", "pass")]
        | UnsetType
    ) = UNSET
    share: (
        Annotated[float, about("Least threshold, as a share of base.", 0.05, ge=0)] | UnsetType
    ) = UNSET


class ProjectKeys(Struct, frozen=True):
    """Keys that ``Config`` keeps as they are written."""

    benchmarks: Annotated[Inside, about("The folder of benchmark files.", "perf")] = "benchmarks"
    pattern: Annotated[FilePattern, about("The files in it that are read.", "test_speed_*.py")] = (
        "bench_*.py"
    )
    python: Annotated[
        Text,
        about("The Python that runs the benchmarks. Default: perfci's own.", ".venv/bin/python"),
    ] = ""
    launcher: Annotated[
        tuple[Text, ...],
        about(
            "Words before Python in the command that starts workers and builds.",
            ["numactl", "--membind=0"],
        ),
    ] = ()
    python_path: Annotated[
        tuple[Inside, ...],
        written("a list of paths inside the repository, relative to its root"),
        about("Folders of a side's tree that come first on the import path.", ["libs/core"]),
    ] = (".", "src")
    installed: Annotated[
        tuple[Text, ...],
        about("Packages of the repository whose installed copy is meant to run.", ["mylib"]),
    ] = ()
    build: Annotated[
        Commands,
        about(
            "Commands that build a side's tree, once per tree, each by `sh -c`. `{python}` is the "
            "side's Python.",
            ["{python} setup.py build_ext --inplace"],
        ),
    ] = ()
    environment: Annotated[
        Environments,
        about("`own`: `build` installs into a Python environment of each side's own.", "own"),
    ] = "shared"
    pytest_args: Annotated[
        tuple[Text, ...],
        about("Arguments of pytest for suites of pytest tests.", ["-c", "benchmark.ini"]),
    ] = ()
    build_timeout: Annotated[Duration, about("The longest time that `build` may take.", "1h")] = (
        1800.0
    )
    pass_env: Annotated[
        Variables,
        about("Further environment variables that workers and builds may see.", ["HF_HOME"]),
    ] = ()
    baselines: Annotated[Inside, about("The folder of stored baselines.", "perf/baselines")] = (
        "baselines"
    )
    history: Annotated[
        Text,
        about(
            "The history: a path or an address of PostgreSQL. Default: a file of the repository's "
            "own in your data folder.",
            "postgresql://perf@db/perfci",
        ),
    ] = ""
    project: Annotated[
        Name, about("Name of the repository's own history. Default: its first commit.", "mylib")
    ] = ""
    why: Annotated[bool, about("`compare` explains cases that moved.")] = True
    aliases: Annotated[
        Mapping[str, Text],
        about("New names of renamed benchmarks or cases, by the old name.", {"encode": "encoder"}),
    ] = {}


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """Settings of measuring. Times are in s, memory in bytes."""

    budget: Annotated[
        Duration,
        about(
            "Time for all that a command measures. If it is too short, fewer cases are measured.",
            "15m",
        ),
    ] = 600.0
    rounds: Annotated[
        int, about("Minimum rounds of a case. Fewer than 5 give no verdict.", 8, ge=2)
    ] = DECIDING_ROUNDS
    max_rounds: Annotated[
        int, about("Most rounds of a case; a larger `rounds` raises it.", 40, ge=2)
    ] = MOST_ROUNDS
    compile_rounds: Annotated[
        int,
        about(
            "Rounds with an empty compile cache. Sides that generate the same code are `unchanged` "
            "with any number; if the code differs, five or more can fail a build.",
            5,
            ge=1,
        ),
    ] = 1
    round_time: Annotated[
        Duration, about("Time of recorded calls per worker and round.", "0.5s")
    ] = 0.3
    burst: Annotated[
        Duration, about("Time until it is the other side's turn; a longer call is one turn.", 0.005)
    ] = 0.0025
    warmup: Annotated[Duration, about("Longest warm-up of a worker.", "5s")] = 2.0
    timeout: Annotated[Duration, about("Longest time of each step of a worker.", "10m")] = 300.0
    seed: Annotated[
        int, about("Seed of the order of cases and of the benchmarks' data.", 1, ge=0)
    ] = 0
    cores: Annotated[
        int, about("Cores that workers are pinned to; 0: up to four, one left free.", 2, ge=0)
    ] = 0
    threads: Annotated[int, about("Threads of a worker; 0: one per core.", 1, ge=0)] = 0
    memory_limit: Annotated[Size, about("Limit of a worker's data; 0: none.", "8GiB")] = 0
    residency: Annotated[
        Residency,
        about(
            "`alternate`: one side's worker lives at a time; for work that fits in memory once.",
            "alternate",
        ),
    ] = "together"
    inject: Annotated[
        Mapping[Injectable, Injected],
        about(
            "Shares by which head is made worse on purpose, to see the gate fail.",
            {"latency": "2%"},
        ),
    ] = field(default_factory=dict)


class Tables(Struct, frozen=True):
    """Keys that hold tables."""

    metrics: Annotated[
        Mapping[str, MetricTable],
        about("A metric's policy, by its name.", {"latency_p50": {"threshold": "3%"}}),
    ] = {}
    thresholds: Annotated[
        Mapping[str, Mapping[str, Threshold]],
        about("Thresholds by benchmark, then by metric.", {"encoder": {"latency_p50": "8%"}}),
    ] = {}
    accept: Annotated[
        tuple[Acceptance, ...],
        about(
            "Regressions that are meant.",
            [{"case": "encoder", "metric": "latency_p50", "because": "safer masks"}],
        ),
    ] = ()
    # any annotation makes a key (``keys_of``)
    quiet: Annotated[QuietTable, "a table"] = QuietTable()
    trend: Annotated[TrendSettings, "a table"] = TrendSettings()


@cache
def keys_of(record: type) -> Mapping[str, Any]:
    """Return the keys that a record has, with their types: the fields with an annotation."""
    hints = get_type_hints(record, include_extras=True)
    return {
        name: hint
        for name, hint in hints.items()
        if Annotated in {get_origin(part) for part in (hint, *get_args(hint))}
    }


KEYS: Mapping[str, Any] = {
    **keys_of(ProjectKeys), **keys_of(MeasureSettings), **keys_of(Policy), **keys_of(Tables)
}  # fmt: skip
"""The keys of ``[tool.perfci]``, with their types."""
