"""Exact metrics: where all workers of a side agree there is nothing to test.

One new graph break is one new graph break. Where they don't agree, no metric is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfci.metrics import Ruling
from perfci.model.finding import Finding, found
from perfci.model.metric import Metric
from perfci.model.report import Comparison, Estimate, Status
from perfci.model.settings import DECIDING_ROUNDS
from perfci.stats.quantile import upper_median
from perfci.verdict.margin import margin

_RESOLUTION = 0.1


@dataclass(frozen=True, slots=True)
class ExactChange:
    """How an exact metric changed: each side's value, and the status that follows."""

    status: Status
    base: float
    head: float
    ratio: float | None
    difference: float | None
    findings: tuple[Finding, ...]


def is_exact(
    metric: Metric, base: Sequence[float], head: Sequence[float], threshold: float
) -> bool:
    """Say whether the workers of each side agree: else the metric is one that was sampled.

    They agree where they lie within a tenth of the threshold of each other: what is between them
    then can't make the difference. With a threshold of 0 (one more graph break is one too many)
    they have to be alike. Of an amount, two workers may agree by chance. What is no number is
    compared with nothing, and not tested either.
    """
    few = min(len(base), len(head)) < DECIDING_ROUNDS
    if metric.absolute and threshold > 0.0 and few:
        return False
    return all(_agree(metric, values, threshold) for values in (base, head))


def _agree(metric: Metric, values: Sequence[float], threshold: float) -> bool:
    lo, hi = min(values), max(values)
    if not math.isfinite(lo) or not math.isfinite(hi):
        return True
    if metric.absolute:
        return hi - lo <= _RESOLUTION * threshold
    if metric.floor is not None:
        lo, hi = max(lo, metric.floor), max(hi, metric.floor)
    return lo == hi or (lo > 0.0 and math.log(hi / lo) <= _RESOLUTION * math.log1p(threshold))


def compare_exactly(
    metric: Metric, base: Sequence[float], head: Sequence[float], threshold: float
) -> ExactChange:
    """Compare the upper medians of both sides' workers, which agree.

    Not the mean: it need not be a value that was seen.
    """
    remarks: tuple[Finding, ...] = ()
    before, after = upper_median(base), upper_median(head)
    if metric.absolute:
        change = after - before
        status = _status(change if metric.direction == "lower" else -change, threshold)
        return ExactChange(status, before, after, None, change, remarks)
    if metric.floor is not None and min(before, after) < metric.floor:
        before, after = max(before, metric.floor), max(after, metric.floor)
        remarks += (found("below-floor", floor=metric.floor),)
    if before == after:
        return ExactChange("unchanged", before, after, 1.0, None, remarks)
    worse = (after > before) == (metric.direction == "lower")
    if before <= 0.0 or after <= 0.0:
        remarks += (found("no-ratio"),)
        return ExactChange("regressed" if worse else "improved", before, after, None, None, remarks)
    ratio = after / before
    _, upper = margin(threshold)
    moved = max(ratio, 1.0 / ratio) >= upper
    changed: Status = "regressed" if worse else "improved"
    return ExactChange(changed if moved else "unchanged", before, after, ratio, None, remarks)


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


def without_numbers(
    empty: Comparison, ruling: Ruling, base: Estimate | None, head: Estimate | None
) -> Comparison:
    """Return the row of a metric whose numbers don't count: the sides as they are, and a ruling."""
    return replace(
        empty,
        method="exact",
        status=ruling.status,
        base=base,
        head=head,
        findings=(*empty.findings, ruling.finding),
    )
