"""A case, as discovery finds it, and a metric: name, unit, direction, kind, threshold and gate."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
"""A name that can stand in a case's id, in tables, paths and comments."""
_LONGEST_NAME, _LONGEST_UNIT = 100, 50
"""What a report keeps of either."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: ``axes`` maps each axis to its value's label.

    ``file`` is relative to the side's tree, ``line`` counts from 1 (0: a saved model).
    ``source_hash`` is of the benchmark's whole file: the version of its meaning.
    ``thresholds`` maps metric names to shares; ``timeout`` is in s; ``skip`` is a reason.
    """

    id: str
    benchmark: str
    axes: Mapping[str, str]
    file: str
    line: int
    source_hash: str
    tags: tuple[str, ...] = ()
    skip: str | None = None
    timeout: float | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    metrics: tuple[str, ...] | None = None
    compiled: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure to measure something."""

    case: str
    side: str
    stage: str
    kind: str
    message: str
    log_tail: str = ""
    alone: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """An installed copy of a distribution of the project's.

    ``paths`` are its folders, which end in a slash, and files that lie in none of them. ``origin``
    is the address of the git repository that it was installed from, where that alone makes it one.
    """

    distribution: str
    paths: tuple[str, ...]
    origin: str = ""


@dataclass(frozen=True, slots=True)
class FileImports:
    """Effects of importing one benchmark file, or a list of modules, on its process.

    ``modules`` are those that the side's own code asked for and that are not its own, in order.
    ``environment`` are variables that were set (``NAME=value``) or removed (``NAME``), ``programs``
    what libraries started, ``read`` files of the tree that they opened. ``state`` is torch's.
    """

    modules: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    state: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Discovery:
    """Content of one side's benchmark files: cases, failed files, and the side's facts.

    ``copies`` are what is installed of the project in the side's Python, which lies in ``pythons``.
    ``sources`` are other clones that it is installed from. ``devices`` are modules of kinds of
    device that other distributions add there, ``metrics`` modules of metrics, with the
    distributions' names. ``imports`` is what each benchmark file's imports did, ``modules`` has all
    that was loaded, with its file. ``importable`` are the folders that this Python imports from
    outside of the checkout, with the names in them; a folder's ends in a slash.
    """

    cases: tuple[Case, ...]
    failures: tuple[Failure, ...]
    facts: Mapping[str, str]
    copies: tuple[Copy, ...] = ()
    pythons: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    imports: Mapping[str, FileImports] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    importable: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


Direction = Literal["lower", "higher"]
Kind = Literal["sampled", "per_worker", "exact"]
Gate = Literal["fail", "warn", "info"]
Undecided = Literal["inconclusive", "pass"]
_DIRECTIONS, _GATES = get_args(Direction), get_args(Gate)
_KINDS, _UNDECIDED = get_args(Kind), get_args(Undecided)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric and its default policy.

    ``threshold`` is a share of base (0.05: five per cent), or an amount in ``unit`` where
    ``absolute`` is set (metrics whose base may be zero); then never less than ``share`` of base.
    ``whole`` names the metric that this metric is a part of. Unless a threshold is set, it
    is never less than ``share_of_whole`` of base's whole.
    ``floor``: smaller values count as this much. ``step``: its instrument counts in multiples of
    it, in ``unit``: values that don't vary are known no better than that. ``undecided`` says what
    an inconclusive gating comparison makes of the verdict. ``rounds_setting`` is the setting that
    gives it more rounds.
    A metric of the kind ``exact`` is tested, too, where the workers of a side disagree. ``always``:
    every case that is measured has it, where the machine can measure it at all. ``zero_if_absent``:
    a worker that doesn't give it counts as zero where another worker of the case gives it.
    """

    name: str
    unit: str
    kind: Kind
    threshold: float
    gate: Gate
    direction: Direction = "lower"
    absolute: bool = False
    share: float = 0.0
    whole: str = ""
    share_of_whole: float = 0.0
    floor: float | None = None
    step: float = 0.0
    undecided: Undecided = "pass"
    rounds_setting: str = "rounds"
    always: bool = False
    zero_if_absent: bool = False


def unfit_reason(metric: Metric) -> str:
    """Return what is wrong with a metric that isn't perfci's own, or nothing.

    Asked where it is written, and by the parent: the message that brings it can be anyone's.
    """
    share = metric.threshold
    checks = (
        ("name", metric.name, _is_name(metric.name), "letters, digits, `_`, `.`, `-`; at most 100"),
        ("unit", metric.unit, _is_short_text(metric.unit), "text of at most 50 characters"),
        ("kind", metric.kind, metric.kind in _KINDS, "sampled, per_worker or exact"),
        ("undecided", metric.undecided, metric.undecided in _UNDECIDED, "inconclusive or pass"),
        ("direction", metric.direction, metric.direction in _DIRECTIONS, "lower or higher"),
        ("gate", metric.gate, metric.gate in _GATES, "fail, warn or info"),
        ("threshold", share, _is_number(share) and 0.0 <= share < math.inf, "a share of base"),
        ("step", metric.step, _is_number(metric.step) and 0.0 <= metric.step < math.inf, "a size"),
    )
    wrong = (
        f"its `{option}` is {value!r}, not {wanted}"
        for option, value, sound, wanted in checks
        if not sound
    )
    return next(wrong, "")


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(NAME.fullmatch(name)) and len(name) <= _LONGEST_NAME


def _is_short_text(text: object) -> bool:
    return isinstance(text, str) and len(text) <= _LONGEST_UNIT and text.isprintable()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
