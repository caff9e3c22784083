"""Exact metrics: where all workers of a side agree there is nothing to test.

One new graph break is one new graph break. Where they don't agree, no metric is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from perfci.metrics import Ruling
from perfci.model.finding import found
from perfci.model.metric import Metric
from perfci.model.report import Comparison, Estimate
from perfci.model.settings import AGREEING_ROUNDS, DECIDING_ROUNDS
from perfci.model.status import Status
from perfci.stats.quantile import upper_median
from perfci.verdict.margin import margin

_RESOLUTION = 0.1


def is_exact(
    metric: Metric, base: Sequence[float], head: Sequence[float], threshold: float
) -> bool:
    """Say whether the workers of each side agree: else the metric is one that was sampled.

    They agree where they lie within a tenth of the threshold of each other: what is between them
    then can't make the difference. With a threshold of 0 (one more graph break is one too many)
    they have to be alike. Of an amount, two workers may agree by chance: few are enough only where
    those of both sides do. What is no number is compared with nothing, and not tested either.
    """
    few = min(len(base), len(head)) < DECIDING_ROUNDS
    if metric.absolute and threshold > 0.0 and few:
        enough = min(len(base), len(head)) >= AGREEING_ROUNDS
        return enough and _agree(metric, (*base, *head), threshold)
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
    empty: Comparison, metric: Metric, base: Sequence[float], head: Sequence[float]
) -> Comparison:
    """Return the row ``empty`` with the change of the upper medians of workers that agree.

    Not of the means: a mean need not be a value that was seen.
    """
    before, after = upper_median(base), upper_median(head)
    if metric.absolute:
        change = after - before
        status = _status(change if metric.direction == "lower" else -change, empty.threshold)
        return _row(empty, status, difference=change)
    if metric.floor is not None and min(before, after) < metric.floor:
        before, after = max(before, metric.floor), max(after, metric.floor)
        remark = found("below-floor", floor=metric.floor)
        empty = replace(empty, findings=(*empty.findings, remark))
    if before == after:
        return _row(empty, "unchanged", ratio=1.0)
    worse = (after > before) == (metric.direction == "lower")
    moved: Status = "regressed" if worse else "improved"
    if before <= 0.0 or after <= 0.0:
        return _row(replace(empty, findings=(*empty.findings, found("no-ratio"))), moved)
    ratio = after / before
    _, upper = margin(empty.threshold)
    return _row(empty, moved if max(ratio, 1.0 / ratio) >= upper else "unchanged", ratio=ratio)


def _row(
    empty: Comparison,
    status: Status,
    *,
    ratio: float | None = None,
    difference: float | None = None,
) -> Comparison:
    """Return an exact change, which is its own interval."""
    return replace(
        empty,
        method="exact",
        status=status,
        ratio=ratio,
        ratio_lo=ratio,
        ratio_hi=ratio,
        difference=difference,
        difference_lo=difference,
        difference_hi=difference,
    )


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
