"""A comparison before anything is known: what a metric and its policy alone say."""

from __future__ import annotations

from perfci.record.metric import Metric
from perfci.record.report import Comparison, Status
from perfci.verdict.policy import MetricPolicy


def empty_row(
    case: str, metric: Metric, rule: MetricPolicy, status: Status, *warnings: str
) -> Comparison:
    """Return a comparison without numbers."""
    return Comparison(
        case=case,
        metric=metric.name,
        unit=metric.unit,
        status=status,
        gate=rule.gate,
        method="none",
        base=None,
        head=None,
        ratio=None,
        ratio_lo=None,
        ratio_hi=None,
        threshold=rule.threshold,
        p=None,
        p_adjusted=None,
        cohens_d=None,
        detectable=None,
        warnings=warnings,
        direction=metric.direction,
    )
