"""Pure: whether a case needs more rounds. The rule looks at intervals, never at p."""

from __future__ import annotations

from collections.abc import Iterable

from perfci.record.case import Case
from perfci.record.metric import METRICS
from perfci.record.report import Comparison
from perfci.verdict.policy import Policy
from perfci.verdict.stopping import awaits_rounds, wants_rounds


def undecided_metrics(
    comparisons: Iterable[Comparison], case: Case, policy: Policy, family: int
) -> tuple[str, ...]:
    """Return the metrics that more rounds are for: those whose doubt would cost the verdict.

    A gating metric that policy lets pass undecided (cold start: half an import of torch is
    noise) prolongs a session only where it shows a change that needs a few more rounds to be
    believed; and not where it doesn't get more of them (only the first rounds compile anew).
    ``family`` is how many gating comparisons the report will have.
    """
    rows = [row for row in comparisons if row.method == "paired_t" and row.metric in METRICS]
    return tuple(
        row.metric
        for row in rows
        if (rule := policy.for_metric(METRICS[row.metric], case)).gate == "fail"
        and (
            wants_rounds(row, policy, family)
            if rule.undecided == "inconclusive"
            else METRICS[row.metric].rounds_setting == "rounds"
            and awaits_rounds(row, policy, family)
        )
    )
