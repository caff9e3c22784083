"""What a report of two commits says to a search: which row is searched for, and its answer."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from perfci.app.bisect.state import Sought
from perfci.bisect.posterior import Answer
from perfci.bisect.search import Question
from perfci.metrics import METRICS
from perfci.model.settings import DECIDING_ROUNDS
from perfci.model.words import words
from perfci.verdict.margin import standard_error, worse_by
from perfci.verdict.policy import MetricPolicy, Policy, metric_policy

if TYPE_CHECKING:
    from perfci.model.report import Comparison, Report


_LEAST_SOUGHT = 0.05


def gated(policy: Policy, metric: str, threshold: float | None = None) -> Policy:
    """Return a policy by which ``metric`` alone decides how many rounds a session has.

    By ``threshold``, or by its own.
    """
    own = policy.metrics.get(metric)
    if own is None:
        own = metric_policy(METRICS[metric]) if metric in METRICS else None
    metrics = {
        name: replace(policy.metrics.get(name) or metric_policy(one), gate="info")
        for name, one in METRICS.items()
    }
    metrics[metric] = MetricPolicy(own.threshold if own else 0.05, "fail", "inconclusive")
    margins = {} if threshold is None else {metric: threshold}
    return replace(policy, metrics=metrics, margins=margins)


def ends_threshold(policy: Policy, metric: str, expected: float | None = None) -> float:
    """Return the threshold by which the ends are compared where ``metric`` is searched for.

    Who names it knows that it moved, and may well mean less than what fails a build: half of 5 %,
    or of the metric's own threshold where that is smaller or an amount. ``expected`` is the ratio
    that the trend saw; then half of that.
    """
    own = policy.metrics.get(metric)
    known = METRICS.get(metric)
    threshold = own.threshold if own else known.threshold if known else _LEAST_SOUGHT
    if known is not None and (known.absolute or known.kind == "exact"):
        return threshold / 2.0
    threshold = min(threshold, _LEAST_SOUGHT)
    if expected and expected != 1.0:
        threshold = min(threshold, math.expm1(abs(math.log(expected))))
    return threshold / 2.0


def moved_most(report: Report, metric: str, alpha: float) -> Comparison | None:
    """Return the row to search for, or None where nothing of ``metric`` (any, if empty) moved.

    One that gates before others, a regression before an improvement, then the one that moved by
    the most of its thresholds.
    """
    moved = [
        row
        for row in report.results
        if (row.metric == metric or not metric)
        and (
            row.status in {"regressed", "improved"}
            or (row.method == "paired_t" and row.p is not None and _adjusted(row) < alpha)
        )
        and answer_of(row, Question(1, 0.0), None) is not None
    ]

    def rank(row: Comparison) -> tuple[bool, bool, bool, float]:
        change = abs(worse_by(row)[0] or 0.0)
        times = change / row.threshold if row.threshold else math.inf
        return row.gate == "fail", row.status == "regressed", row.status == "improved", times

    return max(moved, key=rank, default=None)


def _adjusted(row: Comparison) -> float:
    p = row.p if row.p_adjusted is None else row.p_adjusted
    return 1.0 if p is None else p


def is_ratio(row: Comparison) -> bool:
    """Say whether a row's change is searched for as a ratio: exact amounts may be zero."""
    return row.difference is None and row.method != "exact"


def answer_of(row: Comparison, question: Question, sought: Sought | None) -> Answer | None:
    """Return what a row says of the commit, or None where it carries no interval."""
    log = is_ratio(row) if sought is None else sought.scale == "log"
    if log:
        change = math.log(row.ratio) if row.ratio else None
    elif row.difference is not None:
        change = row.difference
    else:
        centers = [side.center if side else None for side in (row.base, row.head)]
        change = None if None in centers else centers[1] - centers[0]  # type: ignore[operator]
    rounds = row.base.workers if row.base else 0
    if change is None or not math.isfinite(change):
        return None
    same = row.method != "exact" and row.se is None and change == 0.0 and row.ratio_lo == 1.0
    if row.method == "exact" or same:
        return Answer(question.position, change, 0.0, 1.0, rounds, question.base)
    se = row.se if row.se is not None else standard_error(row)
    if se is None or row.df is None:
        return None
    return Answer(question.position, change, se, row.df, rounds, question.base)


def threshold_of(question: Question, sought: Sought) -> float:
    """Return a question's margin as the threshold of the metric: a share, or an amount."""
    return math.expm1(question.margin) if sought.scale == "log" else question.margin


def ran_out(report: Report, case: str) -> bool:
    """Say whether time ran out before a case had the rounds that carry an interval."""
    if case in report.same_code or any(failure.case == case for failure in report.failures):
        return False
    rows = [row for row in report.results if row.case == case]
    if any(one.code == "budget-ended" for row in rows for one in row.findings):
        return True
    return 0 < max((row.base.workers for row in rows if row.base), default=0) < DECIDING_ROUNDS


def why_no_answer(report: Report, row: Comparison | None) -> str:
    """Return in words why a report says nothing of the commit."""
    for failure in report.failures:
        return f"{failure.kind}: {failure.message}"
    if row is None:
        return "it hasn't got the case"
    return "; ".join(map(words, row.findings)) or "it can't be compared with the good commit"
