"""The answers that a report's rows give to a search, and the policy by which they are measured."""

from __future__ import annotations

import math
from dataclasses import replace

from perfci.bisect.posterior import SessionAnswer
from perfci.bisect.search import Question
from perfci.metrics import METRICS
from perfci.model.measuring import DECIDING_ROUNDS
from perfci.model.report import Comparison, Report
from perfci.model.words import words
from perfci.verdict.policy import Policy, standard_error, worsening

_ENDS_THRESHOLD = 0.05
"""Highest relative threshold for comparing the ends, before it is halved."""


def gated(policy: Policy, metric: str, threshold: float) -> Policy:
    """Return a policy in which ``metric`` alone decides how many rounds a session has.

    A change in either direction counts. Other metrics are only shown.
    """
    return replace(policy, searched=metric, margin=threshold, two_sided=True)


def ends_threshold(policy: Policy, metric: str, size: float | None = None) -> float:
    """Return the threshold for comparing the ends when ``metric`` is searched for.

    A user who names the metric knows that it moved, perhaps by less than the metric's threshold. So
    this one is half of that. For a ratio, it is also at most half of 5 %, and of ``size``.
    """
    configured = policy.metrics.get(metric)
    known = METRICS.get(metric)
    default = known.threshold if known else _ENDS_THRESHOLD
    threshold = configured.threshold if configured else default
    if known is not None and (known.absolute or known.kind == "exact"):
        return threshold / 2.0
    return min(threshold, _ENDS_THRESHOLD, size or 1.0) / 2.0


def moved_most(report: Report, metric: str, alpha: float) -> Comparison | None:
    """Return the row to search for, or None if nothing of ``metric`` (any, if empty) moved.

    Gating rows come first, then regressions before improvements, then the largest change in units
    of the threshold.
    """
    moved = [
        row
        for row in report.results
        if (row.metric == metric or not metric)
        and (
            row.status in {"regressed", "improved"}
            or (
                row.method == "paired_t"
                and row.p is not None
                and (row.p if row.p_adjusted is None else row.p_adjusted) < alpha
            )
        )
        and answer_of(row, Question(1, 0.0), log=is_ratio(row)) is not None
    ]

    def rank(row: Comparison) -> tuple[bool, bool, bool, float]:
        change = abs(worsening(row).change)
        times = change / row.threshold if row.threshold else math.inf
        times = 0.0 if math.isnan(times) else times
        return row.gate == "fail", row.status == "regressed", row.status == "improved", times

    return max(moved, key=rank, default=None)


def is_ratio(row: Comparison) -> bool:
    """Return whether a row's change is searched for as a ratio. An exact amount may be zero."""
    return row.difference is None and row.method != "exact"


def answer_of(row: Comparison, question: Question, *, log: bool) -> SessionAnswer | None:
    """Return a row's answer about the commit, or None if the row has no interval.

    With ``log`` the answer is the logarithm of the ratio.
    """
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
    # the interval is the point 1: both sides had the same values, so there is no standard error
    same = row.method != "exact" and row.se is None and change == 0.0 and row.ratio_lo == 1.0
    se, df = (0.0, 1.0) if row.method == "exact" or same else (row.se, row.df)
    se = standard_error(row) if se is None else se
    if se is None or df is None:
        return None
    return SessionAnswer(question.position, change, se, df, rounds, question.base)


def ran_out(report: Report, case: str) -> bool:
    """Return whether time ran out before a case had enough rounds for an interval."""
    rows = [row for row in report.results if row.case == case]
    if any(failure.case == case for failure in report.failures):
        return False
    if any(row.status == "untouched" for row in rows):
        return False
    if any(finding.code == "budget-ended" for row in rows for finding in row.findings):
        return True
    return 0 < max((row.base.workers for row in rows if row.base), default=0) < DECIDING_ROUNDS


def no_answer_reason(report: Report, row: Comparison | None) -> str:
    """Return in words why a report has no answer about the commit."""
    for failure in report.failures:
        return f"{failure.kind}: {failure.message}"
    if row is None:
        return "it doesn't have the case"
    return "; ".join(map(words, row.findings)) or "it can't be compared with the good commit"
