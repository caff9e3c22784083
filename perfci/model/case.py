"""A case, a failure to measure it, and a metric with its default policy."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
"""A name that can stand in a case's id, in tables, paths and comments."""
_LONGEST_NAME, _LONGEST_UNIT = 100, 50
"""Most characters of a metric's name and of its unit: a report would cut longer ones."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: a benchmark with one value for each of its axes.

    ``axes`` maps each axis to its value's label. ``file`` is relative to the side's tree. ``line``
    counts from 1. ``source_hash`` is the hash of the benchmark's whole file without its comments:
    another hash means that the benchmark may measure something else. ``thresholds`` maps metric
    names to shares, ``timeout`` is in s, ``skip`` is the reason why the case is skipped.
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
    """A case that one side couldn't measure, or benchmark files, separated by commas.

    ``stage`` is the worker's step that failed. ``kind`` is the sort of failure: an exception's
    name, or a slug such as ``timeout``. ``log_tail`` is the end of the worker's output.
    """

    case: str
    side: str
    stage: str
    kind: str
    message: str
    log_tail: str = ""


Direction = Literal["lower", "higher"]
Kind = Literal["sampled", "per_worker", "exact"]
Gate = Literal["fail", "warn", "info"]
Undecided = Literal["inconclusive", "pass"]
_DIRECTIONS, _GATES = get_args(Direction), get_args(Gate)
_KINDS, _UNDECIDED = get_args(Kind), get_args(Undecided)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric and its default policy.

    ``kind``: how it is measured. An ``exact`` metric is tested if the workers of a side differ.
    ``threshold``: a share of base (0.05: five per cent), or an amount in ``unit`` if ``absolute``.
    ``gate``: what a regression does to the verdict.
    ``direction``: whether lower or higher values are better.
    ``absolute``: compared by differences instead of ratios, as base may be zero.
    ``share``: the threshold is never less than this share of base's value.
    ``whole``: the metric that this metric is a part of, or "".
    ``share_of_whole``: the threshold is never less than this share of base's value of ``whole``.
    A configured threshold turns the latter bound off.
    ``floor``: smaller values count as this value.
    ``step``: the resolution of the instrument, in ``unit``. Values are multiples of it.
    ``undecided``: what an inconclusive gating comparison makes of the verdict.
    ``rounds_setting``: the setting that gives this metric more rounds.
    ``always``: every measured case has this metric if the machine can measure it at all.
    ``zero_if_absent``: a worker without this metric counts as zero if another worker of the case
    has it.
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
    """Return what is wrong with a metric that isn't perfci's own, or "".

    It is called where the metric is defined. The parent calls it again on a worker's message, which
    any code in the worker may have written.
    """
    threshold = metric.threshold
    checks = (
        ("name", metric.name, _is_name(metric.name), "letters, digits, `_`, `.`, `-`; at most 100"),
        ("unit", metric.unit, _is_short_text(metric.unit), "text of at most 50 characters"),
        ("kind", metric.kind, metric.kind in _KINDS, "sampled, per_worker or exact"),
        ("undecided", metric.undecided, metric.undecided in _UNDECIDED, "inconclusive or pass"),
        ("direction", metric.direction, metric.direction in _DIRECTIONS, "lower or higher"),
        ("gate", metric.gate, metric.gate in _GATES, "fail, warn or info"),
        ("threshold", threshold, _is_finite_size(threshold), "a finite number, 0 or more"),
        ("step", metric.step, _is_finite_size(metric.step), "a finite number, 0 or more"),
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


def _is_finite_size(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0.0 <= value < math.inf
