"""Rows for what has no numbers: failed, new, removed and unmeasured cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perfci.record.case import Failure
from perfci.record.metric import METRICS
from perfci.record.ran import WRONG_CODE
from perfci.record.report import Comparison, Status
from perfci.verdict.policy import Policy, metric_policy
from perfci.verdict.row import empty_row

_STANDS_FOR_CASE = METRICS["latency_p50"]
"""The metric every case has; a row needs one, and one row is enough for a case."""


def failure_rows(
    failures: Iterable[Failure],
    removed: Sequence[str],
    policy: Policy,
    new: Sequence[str] = (),
) -> tuple[Comparison, ...]:
    """Return one row for each case that failed, or that one side alone has.

    A case that fails on base only is ``new``: head can be measured, there is nothing beside
    it. One that fails on head, on both sides or not, is ``failed``; and so is one of which either
    side ran another's code: base has it, and it was not measured.
    """
    by_case: dict[str, list[Failure]] = {}
    for failure in failures:
        by_case.setdefault(failure.case, []).append(failure)
    rows = []
    for case, mine in by_case.items():
        on_base_only = all(
            failure.side == "base" and failure.kind != WRONG_CODE for failure in mine
        )
        reasons = dict.fromkeys(describe(failure) for failure in mine)
        rows.append(placeholder(case, "new" if on_base_only else "failed", policy, *reasons))
    one_sided: tuple[tuple[Sequence[str], Status, str], ...] = (
        (removed, "removed", "head hasn't got it"),
        (new, "new", "base hasn't got it"),
    )
    rows += [
        placeholder(case, status, policy, why)
        for cases, status, why in one_sided
        for case in cases
        if case not in by_case
    ]
    return tuple(rows)


def placeholder(case: str, status: Status, policy: Policy, *reasons: str) -> Comparison:
    """Return a row without numbers for a whole case, with the reasons as its warnings."""
    rule = policy.metrics.get(_STANDS_FOR_CASE.name) or metric_policy(_STANDS_FOR_CASE)
    return empty_row(case, _STANDS_FOR_CASE, rule, status, *reasons)


def describe(failure: Failure) -> str:
    """Return a failure in one line: side, stage and the first line of its message."""
    lines = failure.message.strip().splitlines()
    said = f": {lines[0]}" if lines else ""
    return f"{failure.side} failed in {failure.stage} ({failure.kind}){said}"
