"""Compare the rounds of a row within each of its processes' two speeds. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perfci.finding import TWO_SPEEDS, Finding, finding
from perfci.model.case import Metric
from perfci.model.report import Comparison
from perfci.stats.speeds import TwoSpeeds, two_speeds
from perfci.stats.t_tests import how_many, no_evidence

_FEWEST_ANCESTORS = 4
"""Fewest independent rounds that show two speeds: the change and the gap take two of them."""


def speeds_of(
    metric: Metric, base: Sequence[float], head: Sequence[float], ancestors: Sequence[int]
) -> TwoSpeeds | None:
    """Return the two speeds of the rounds' processes, or None if the rounds don't show them."""
    if metric.absolute or metric.direction != "lower" or min((*base, *head), default=0.0) <= 0.0:
        return None
    if no_evidence((*base, *head)) or how_many(ancestors) < _FEWEST_ANCESTORS:
        return None
    return two_speeds([math.log(h / b) for b, h in zip(base, head, strict=True)])


def at_one_speed(
    base: Sequence[float], head: Sequence[float], speeds: TwoSpeeds | None
) -> tuple[Sequence[float], Sequence[float]]:
    """Return both sides' values as if both processes of each round had run at one speed."""
    if speeds is None:
        return base, head
    halves = [math.exp(speeds.gap * move / 2.0) for move in speeds.moves]
    return (
        [value * half for value, half in zip(base, halves, strict=True)],
        [value / half for value, half in zip(head, halves, strict=True)],
    )


def speeds_finding(speeds: TwoSpeeds) -> Finding:
    """Return the remark that the sides were compared within two speeds of their processes."""
    return finding(
        TWO_SPEEDS,
        apart=math.exp(speeds.gap),
        head_slow=speeds.head_slow,
        base_slow=speeds.base_slow,
        rounds=len(speeds.moves),
        mean_lo=math.exp(speeds.lo),
        mean_hi=math.exp(speeds.hi),
    )


def mean_over_speeds(row: Comparison) -> tuple[float, float] | None:
    """Return the mean change over both speeds and its upper limit, or None for one speed.

    If head's processes are slow more often, the change within each speed doesn't show it.
    """
    for known in row.findings:
        if known.code == TWO_SPEEDS:
            lo, hi = (math.log(float(known.arguments[end])) for end in ("mean_lo", "mean_hi"))
            return (lo + hi) / 2.0, hi
    return None
