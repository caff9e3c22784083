"""Pure: whether a case needs more rounds. The rule looks at intervals, never at p."""

from __future__ import annotations

from collections.abc import Iterable

from perfci.record.case import Case
from perfci.record.metric import METRICS
from perfci.record.report import Comparison
from perfci.verdict.policy import Policy
from perfci.verdict.stopping import is_decided


def undecided_metrics(
    comparisons: Iterable[Comparison], case: Case, policy: Policy, family: int
) -> tuple[str, ...]:
    """Return the metrics that more rounds are for: those whose doubt would cost the verdict.

    A gating metric that policy lets pass undecided (cold start: half an import of torch is
    noise) never prolongs a session by itself. ``family`` is how many gating comparisons the
    report will have.
    """
    return tuple(
        comparison.metric
        for comparison in comparisons
        if comparison.method == "paired_t"
        and comparison.metric in METRICS
        and policy.for_metric(METRICS[comparison.metric], case).gate == "fail"
        and policy.for_metric(METRICS[comparison.metric], case).undecided == "inconclusive"
        and not is_decided(
            comparison.ratio_lo,
            comparison.ratio_hi,
            comparison.threshold,
            pairs=comparison.base.workers if comparison.base else 0,
            level=policy.alpha / max(1, family),
        )
    )
