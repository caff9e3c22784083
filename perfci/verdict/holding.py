"""A verdict that was reached elsewhere, held to what is known here: never laxer. Pure.

Whoever measures decides by the configuration of its own checkout, which in a pull request is the
pull request's. A pass is only one if the policy here gives it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfci.record.metric import METRICS
from perfci.record.report import Comparison, Report, Verdict
from perfci.verdict.deciding import decide, moved_text
from perfci.verdict.judging import threshold_of, threshold_text, worse_by
from perfci.verdict.policy import MetricPolicy, Policy, metric_policy

ELSEWHERE = "the report says pass, by the configuration that it was measured with"


def held(report: Report, policy: Policy) -> Report:
    """Return ``report`` with a pass that ``policy`` doesn't give made what it is here.

    The rows stay as they are judged: what one session's family of comparisons was isn't in a
    report, and correcting for another one would be no stricter. But what got worse by more than
    ``policy`` allows, and passed for a wider threshold or a weaker gate, is no pass. A shard that
    had nothing to measure passes everywhere.
    """
    if report.verdict.status != "pass" or (report.shard and not report.results):
        return report
    again = decide(report.results, report.failures, policy, interrupted=report.interrupted)
    if again.status != "pass":
        return replace(report, verdict=Verdict(again.status, (*again.reasons, ELSEWHERE)))
    laxer = tuple(_laxer(report.results, policy))
    if not laxer:
        return report
    return replace(report, verdict=Verdict("inconclusive", (*laxer, ELSEWHERE)))


def doubted(report: Report, why: str) -> Report:
    """Return ``report``, which ``why`` keeps from passing; nothing keeps it where that is empty.

    What is worse than undecided stays what it is, with ``why`` as its last reason.
    """
    if not why:
        return report
    status, reasons = report.verdict.status, report.verdict.reasons
    if status in {"fail", "error"}:
        return replace(report, verdict=Verdict(status, (*reasons, why)))
    return replace(report, verdict=Verdict("inconclusive", (why, *reasons)))


def _laxer(rows: Sequence[Comparison], policy: Policy) -> Iterator[str]:
    """Say of each row that is beyond what ``policy`` allows for what it passed."""
    for row in rows:
        here = _here(row, policy)
        if here is not None:
            here = replace(
                here, threshold=here.threshold_for(row.base.center if row.base else None)
            )
        if here is None or here.gate != "fail" or not _is_beyond(row, here.threshold):
            continue
        told = moved_text(replace(row, threshold=here.threshold))
        if row.gate != "fail":
            yield f"{told}, passed for gate = {row.gate!r} in the report"
        elif row.threshold > here.threshold:
            yield f"{told}, passed for a threshold of {threshold_text(row)} in the report"


def _here(row: Comparison, policy: Policy) -> MetricPolicy | None:
    """Return what ``policy`` says of the row; None for a metric that it doesn't know."""
    configured = policy.metrics.get(row.metric)
    if configured is None and row.metric in METRICS:
        configured = metric_policy(METRICS[row.metric])
    own = policy.thresholds.get(row.case.partition("[")[0], {}).get(row.metric)
    if configured is None or own is None:
        return configured
    return replace(configured, threshold=own)


def _is_beyond(row: Comparison, threshold: float) -> bool:
    """Whether it is worse with 95 % confidence, and by ``threshold`` or more."""
    if row.status == "regressed":
        return True
    change, least, _ = worse_by(row)
    if change is None or least is None or least <= 0.0:
        return False
    return change >= threshold_of(replace(row, threshold=threshold))
