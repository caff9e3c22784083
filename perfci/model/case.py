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
    """A failure of ``case`` (or of benchmark files, by comma) on ``side`` to be measured.

    ``stage`` is the step that failed, ``kind`` the sort of failure (an exception's name, a
    time-out), ``log_tail`` the end of the worker's output. ``alone`` says how the case fared when
    it ran again by itself.
    """

    case: str
    side: str
    stage: str
    kind: str
    message: str
    log_tail: str = ""
    alone: str = ""


Direction = Literal["lower", "higher"]
Kind = Literal["sampled", "per_worker", "exact"]
Gate = Literal["fail", "warn", "info"]
Undecided = Literal["inconclusive", "pass"]
_DIRECTIONS, _GATES = get_args(Direction), get_args(Gate)
_KINDS, _UNDECIDED = get_args(Kind), get_args(Undecided)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric and its default policy.

    ``kind``: how it is measured; an ``exact`` metric is tested, too, where a side's workers differ.
    ``threshold``: a share of base (0.05: five per cent), or an amount in ``unit`` if ``absolute``.
    ``gate``: what a regression does to the verdict.
    ``direction``: the better one.
    ``absolute``: compared by differences, as base may be zero.
    ``share``: the threshold is never less than this share of base's value.
    ``whole``: the metric that this metric is a part of.
    ``share_of_whole``: the same of base's whole, unless a threshold is configured.
    ``floor``: smaller values count as this much.
    ``step``: the instrument counts in multiples of it, in ``unit``; no value is known better.
    ``undecided``: what an inconclusive gating comparison makes of the verdict.
    ``rounds_setting``: the setting that gives it more rounds.
    ``always``: every measured case has it, where the machine can measure it at all.
    ``zero_if_absent``: a worker without it counts as zero where another worker of the case has it.
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

    Called where the metric is defined and again by the parent, because a worker's message may come
    from anyone's code.
    """
    threshold = metric.threshold
    checks = (
        ("name", metric.name, _is_name(metric.name), "letters, digits, `_`, `.`, `-`; at most 100"),
        ("unit", metric.unit, _is_short_text(metric.unit), "text of at most 50 characters"),
        ("kind", metric.kind, metric.kind in _KINDS, "sampled, per_worker or exact"),
        ("undecided", metric.undecided, metric.undecided in _UNDECIDED, "inconclusive or pass"),
        ("direction", metric.direction, metric.direction in _DIRECTIONS, "lower or higher"),
        ("gate", metric.gate, metric.gate in _GATES, "fail, warn or info"),
        ("threshold", threshold, _is_finite_size(threshold), "a share of base"),
        ("step", metric.step, _is_finite_size(metric.step), "a size"),
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
