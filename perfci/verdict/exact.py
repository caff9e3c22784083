"""Exact metrics: no noise, so no test; one new graph break is one new graph break."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfci.record.metric import Metric
from perfci.record.report import Comparison, Status
from perfci.verdict.stopping import margin


@dataclass(frozen=True, slots=True)
class ExactChange:
    """How an exact metric changed: each side's value, and the status that follows."""

    status: Status
    base: float
    head: float
    ratio: float | None
    difference: float | None
    warnings: tuple[str, ...]


def compare_exactly(
    metric: Metric, base: Sequence[float], head: Sequence[float], threshold: float
) -> ExactChange:
    """Compare the upper medians of both sides' workers.

    Not the mean: 0 and 1 graph breaks don't make half of one. Workers of one side that disagree
    are told of; an amount (with a threshold above zero) then moved only where every worker of one
    side lies beyond all of the other's. A count moved even so: one new graph break is one.
    """
    found = _compared(metric, base, head, threshold)
    apart = max(base) < min(head) or max(head) < min(base)
    if threshold > 0.0 and found.status in {"regressed", "improved"} and not apart:
        return replace(found, status="inconclusive")
    return found


def _compared(
    metric: Metric, base: Sequence[float], head: Sequence[float], threshold: float
) -> ExactChange:
    warnings = tuple(
        f"workers of {side} disagree: {min(values):g} to {max(values):g}"
        for side, values in (("base", base), ("head", head))
        if min(values) != max(values)
    )
    before, after = exact_value(base), exact_value(head)
    if metric.absolute:
        change = after - before
        status = _status(change if metric.direction == "lower" else -change, threshold)
        return ExactChange(status, before, after, None, change, warnings)
    if metric.floor is not None and min(before, after) < metric.floor:
        before, after = max(before, metric.floor), max(after, metric.floor)
        warnings += (f"values below {metric.floor:g} count as {metric.floor:g}",)
    if before == after:
        return ExactChange("unchanged", before, after, 1.0, None, warnings)
    worse = (after > before) == (metric.direction == "lower")
    if before <= 0.0 or after <= 0.0:
        warnings += ("one side is zero or below: there is no ratio",)
        return ExactChange(
            "regressed" if worse else "improved", before, after, None, None, warnings
        )
    ratio = after / before
    _, upper = margin(threshold)
    moved = max(ratio, 1.0 / ratio) >= upper
    changed: Status = "regressed" if worse else "improved"
    return ExactChange(changed if moved else "unchanged", before, after, ratio, None, warnings)


def _status(worse_by: float, threshold: float) -> Status:
    if worse_by == 0.0 or abs(worse_by) < threshold:
        return "unchanged"
    return "regressed" if worse_by > 0.0 else "improved"


def judge_exactly(row: Comparison, change: float | None, threshold: float) -> Status:
    """Return what ``row``, an exact one, is by another threshold than its own.

    ``change`` is by how much it is worse, on the scale of ``threshold``; without one it has moved
    whatever the threshold. The ends of its sides are what their workers gave.
    """
    if change is None or row.base is None or row.head is None:
        return row.status
    if change == 0.0 or abs(change) < threshold:
        return "unchanged"
    ends = (row.base.lo, row.base.hi, row.head.lo, row.head.hi)
    base_lo, base_hi, head_lo, head_hi = (math.nan if end is None else end for end in ends)
    if row.threshold > 0.0 and not (base_hi < head_lo or head_hi < base_lo):
        return "inconclusive"
    return "regressed" if change > 0.0 else "improved"


def exact_value(values: Sequence[float]) -> float:
    """Return the upper median: a value that was really seen."""
    return sorted(values)[len(values) // 2]
