"""The verdict: one word with reasons for all comparisons and failures, and a report with it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from perfci.finding import (
    DONE_ONCE,
    LOOKS_SLOWER,
    NOTHING_EXERCISED,
    Finding,
    Plain,
    Reason,
    finding,
)
from perfci.metrics import METRICS
from perfci.model.case import Failure
from perfci.model.measuring import DECIDING_ROUNDS
from perfci.model.report import Comparison, Report, Verdict
from perfci.model.status import Status, traits
from perfci.model.words import REMARKS
from perfci.model.worker import TEST_SKIPPED, WRONG_CODE
from perfci.units import first_of
from perfci.verdict.case_comparisons import empty_row
from perfci.verdict.caveats import excludes_regression, rare_state
from perfci.verdict.policy import Policy, pair_changes, worsening

UNDECIDED = Verdict("inconclusive", ())
"""The verdict of a report until ``with_verdict`` decides it."""
_NOT_BROKEN = {TEST_SKIPPED}
"""Kinds of failure on both sides that are always allowed."""
_STANDS_FOR_CASE = "latency_p50"
"""Metric of a row that stands for a whole case. Every case has this metric."""
_NOISE_P = 0.01
"""A row of which p alone is below this looks slower by more than noise."""
_FAR_SLOWER = math.log(4.0)
"""Log of a single pair's ratio that is more than noise."""
_MOST_NAMES = 3
"""Largest number of cases that a reason names."""


def failure_rows(
    failures: Iterable[Failure],
    removed: Sequence[str],
    policy: Policy,
    new: Sequence[str] = (),
    measured: Collection[str] = (),
) -> tuple[Comparison, ...]:
    """Return one row for each case that failed, or that one side alone has.

    ``new`` are the cases that base does not have: such a case remains ``new`` if it failed on base
    alone. Every other case that failed is ``failed``, whichever side it failed on. Cases that are
    ``measured`` get no row here: they have rows from their rounds before the failure.
    """
    by_case: dict[str, list[Failure]] = {}
    for failure in failures:
        by_case.setdefault(failure.case, []).append(failure)
    on_base = failed_on_base(failures)
    rows = []
    for case, failures_of_case in by_case.items():
        if case in measured:
            continue
        reasons = dict.fromkeys(failed_finding(failure) for failure in failures_of_case)
        status: Status = "new" if case in new and case in on_base else "failed"
        rows.append(placeholder(case, status, policy, *reasons))
    lacks_head, lacks_base = (finding("absent", side=side) for side in ("head", "base"))
    gone = [placeholder(case, "removed", policy, lacks_head) for case in removed]
    added = [placeholder(case, "new", policy, lacks_base) for case in new]
    return (*rows, *(row for row in (*gone, *added) if row.case not in by_case))


def failed_on_base(failures: Iterable[Failure]) -> dict[str, Failure]:
    """Return the cases that failed on base alone, each with its first failure.

    A case whose side ran another commit's code is not among them: its results can't be believed.
    """
    first: dict[str, Failure] = {}
    others: set[str] = set()
    for failure in failures:
        if failure.side == "base" and failure.kind != WRONG_CODE:
            first.setdefault(failure.case, failure)
        else:
            others.add(failure.case)
    return {case: failure for case, failure in first.items() if case not in others}


def new_cases(rows: Iterable[Comparison]) -> set[str]:
    """Return the cases that base does not have at all: each of their rows is ``new``."""
    statuses: dict[str, set[Status]] = {}
    for row in rows:
        statuses.setdefault(row.case, set()).add(row.status)
    return {case for case, of_case in statuses.items() if of_case == {"new"}}


def placeholder(case: str, status: Status, policy: Policy, *reasons: Finding) -> Comparison:
    """Return a row without numbers for a whole case, with the reasons as its findings."""
    return empty_row(case, policy.of(METRICS[_STANDS_FOR_CASE]), status, *reasons)


def failed_finding(failure: Failure) -> Finding:
    """Return a failure as a finding: side, stage, kind and the first line of its message."""
    lines = failure.message.strip().splitlines()
    more: dict[str, Plain] = {"message": lines[0]} if lines else {}
    return finding("failed", side=failure.side, stage=failure.stage, kind=failure.kind, **more)


def reason_of(row: Comparison) -> Finding | None:
    """Return why the row has its status: its last finding that isn't a remark on its numbers."""
    reasons = [finding for finding in row.findings if finding.code not in REMARKS]
    return reasons[-1] if reasons else None


def decide(
    comparisons: Sequence[Comparison],
    failures: Sequence[Failure],
    policy: Policy,
    *,
    unconfirmed: bool = False,
    interrupted: bool = False,
) -> Verdict:
    """Return the verdict with all reasons, the deciding ones first.

    - ``fail``: a gating comparison regressed, whatever else went wrong.
    - ``error``: head fails a case that base passes, both fail a case that may not be broken, a side
      ran another commit's code, head lost a benchmark's own gating metric, or nothing was measured.
    - ``inconclusive``: a regression that would gate can't be excluded, base fails a case that it
      has, or the measurement was interrupted.
    """
    regressions = _regressions(comparisons, gating=True)
    errors = _errors(comparisons, failures, policy)
    undecided = _undecided(comparisons, failures, policy, interrupted=interrupted)
    notes = (
        *_broken_on_both(failures, policy, allowed=True),
        *(_row_reason("lost-metric", row) for row in lost_metrics(comparisons)),
        *(_acceptance_reason(row) for row in comparisons if row.accepted and row.gate != "info"),
        *_regressions(comparisons, gating=False),
        *_undecided_warnings(comparisons),
    )
    if regressions:
        doubts = (Reason("unconfirmed"),) if unconfirmed else ()
        return Verdict("fail", (*regressions, *doubts, *errors, *undecided, *notes))
    if errors:
        return Verdict("error", (*errors, *undecided, *notes))
    if undecided:
        return Verdict("inconclusive", (*undecided, *notes))
    return Verdict("pass", notes)


def kept_from_passing(verdict: Verdict, reason: Reason) -> Verdict:
    """Return ``verdict``, made inconclusive by ``reason``. A worse verdict gets the reason last."""
    if verdict.status in {"fail", "error"}:
        return Verdict(verdict.status, (*verdict.findings, reason))
    return Verdict("inconclusive", (reason, *verdict.findings))


def require_gate(verdict: Verdict, rows: Sequence[Comparison]) -> Verdict:
    """Return a whole report's ``verdict``. A pass that no row could fail becomes inconclusive."""
    compared = [row for row in rows if row.base is not None and row.head is not None]
    if verdict.status != "pass" or not compared or any(row.gate == "fail" for row in compared):
        return verdict
    return kept_from_passing(verdict, Reason("nothing-gates"))


def lost_metrics(rows: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Return the rows of gating metrics that head no longer reports, of cases that it still has.

    A row that stands for a whole removed case isn't returned: it is the case's only row, and has no
    number.
    """
    kept = {row.case for row in rows if row.status != "removed"}
    return tuple(
        row
        for row in rows
        if row.status == "removed"
        and row.gate == "fail"
        and (row.case in kept or row.base is not None)
    )


def was_measured(row: Comparison) -> bool:
    """Say whether ``row`` has numbers of a side.

    Rows of cases that the budget didn't reach have none. Numbers of a metric that head no longer
    reports don't count.
    """
    sides = (row.base, row.head)
    return row.status != "removed" and any(side is not None and side.workers > 0 for side in sides)


def _regressions(rows: Sequence[Comparison], *, gating: bool) -> tuple[Reason, ...]:
    moved = [
        row
        for row in rows
        if row.status == "regressed"
        and not (row.accepted or row.follows)
        and row.gate == ("fail" if gating else "warn")
    ]
    ranked = sorted(moved, key=_severity, reverse=True)
    return tuple(_change_reason(row, warns=not gating) for row in ranked)


def _broken_on_both(
    failures: Sequence[Failure], policy: Policy, *, allowed: bool
) -> tuple[Reason, ...]:
    """Return the cases that fail on both sides: those that may if ``allowed``, else the others.

    A test that pytest skipped is not broken.
    """
    on_base = {failure.case for failure in failures if failure.side == "base"}
    return tuple(
        dict.fromkeys(
            Reason("failed-on-both-sides", failure.case, because=failed_finding(failure))
            for failure in failures
            if failure.side != "base" and failure.case in on_base and failure.kind != WRONG_CODE
            if (failure.kind in _NOT_BROKEN or policy.may_be_broken(failure.case)) is allowed
        )
    )


def _undecided_warnings(rows: Sequence[Comparison]) -> tuple[Reason, ...]:
    """Return the undecided rows of metrics that warn, whose whole interval is beyond the threshold.

    A tail metric gets no rounds of its own, so it is rarely significant among all tests of a
    report. docs/results/memory-and-tails.md measures how many false alarms these reasons cost.
    """
    beyond = [
        row
        for row in rows
        if (row.status, row.gate, row.method) == ("inconclusive", "warn", "paired_t")
        and worsening(row).is_worse
    ]
    return tuple(
        replace(_change_reason(row, warns=True), code="warned-undecided", because=reason_of(row))
        for row in sorted(beyond, key=_severity, reverse=True)
    )


def _errors(
    rows: Sequence[Comparison], failures: Sequence[Failure], policy: Policy
) -> tuple[Reason, ...]:
    on_base = {failure.case for failure in failures if failure.side == "base"}
    broken = dict.fromkeys(
        Reason("failed", failure.case, because=failed_finding(failure))
        for failure in failures
        if failure.kind == WRONG_CODE or (failure.side != "base" and failure.case not in on_base)
    )
    broken |= dict.fromkeys(_broken_on_both(failures, policy, allowed=False))
    broken |= dict.fromkeys(_row_reason("no-number", row) for row in rows if _lost_its_gate(row))
    has_results = failed_on_base(failures) or any(
        was_measured(row) or traits(row.status).answers or row.status == "untouched" for row in rows
    )
    return tuple(broken) if has_results else (*broken, Reason("nothing-measured"))


def _lost_its_gate(row: Comparison) -> bool:
    """Say whether a benchmark's own metric that may fail the report lost its number on head.

    perfci's own metrics may go for good reasons: code that isn't compiled has no compile time.
    """
    return (
        row.gate == "fail"
        and row.metric not in METRICS
        and row.base is not None
        and row.head is None
    )


def _undecided(
    rows: Sequence[Comparison],
    failures: Sequence[Failure],
    policy: Policy,
    *,
    interrupted: bool,
) -> tuple[Reason, ...]:
    new = new_cases(rows)
    on_base_alone = [
        Reason("failed-on-base", case, because=failed_finding(failure))
        for case, failure in failed_on_base(failures).items()
        if case not in new
    ]
    undecided = [
        _undecided_reason(row)
        for row in rows
        if row.status == "inconclusive"
        and row.gate == "fail"
        and (
            policy.undecided(row.metric) == "inconclusive"
            or _looks_regressed(row)
            or (row.pairs > 1 and _slower_in_each_pair(row))
        )
        and not (excludes_regression(row) or _lost_its_gate(row))
    ]
    undecided.sort(key=lambda reason: reason.code != LOOKS_SLOWER)
    undecided += [
        Reason(DONE_ONCE, row.case, row.metric, because=remark)
        for row in rows
        for remark in row.findings
        if remark.code == DONE_ONCE
    ]
    reasons = [*on_base_alone, *undecided, *_left_open(rows)]
    uncompared = sum(traits(row.status).answers for row in rows)
    if uncompared and not reasons and not any(map(was_measured, rows)):
        reasons = [Reason("nothing-to-compare-with", arguments={"new": uncompared})]
    return (Reason("interrupted"), *reasons) if interrupted else tuple(reasons)


def _looks_regressed(row: Comparison) -> bool:
    """Say whether only a caveat keeps the row, significant among all, from having regressed."""
    return row.method == "paired_t" and any(
        known.code == "looks-regressed" for known in row.findings
    )


def _looks_slower(row: Comparison) -> bool:
    """Say whether an undecided row is worse by its threshold, and by more than noise is.

    Its p alone, not corrected, is below 1 %, or it has too few rounds for a p that counts, and
    looks slower in each. docs/statistics.md has how often identical cases look so.
    """
    if row.method != "paired_t" or not worsening(row).looks_worse:
        return False
    if _looks_regressed(row) or _slower_in_each_pair(row):
        return True
    enough = len(pair_changes(row)) >= DECIDING_ROUNDS
    return enough and row.p is not None and row.p < _NOISE_P


def _slower_in_each_pair(row: Comparison) -> bool:
    """Say whether each pair is worse by the threshold, of pairs too few for a p that counts.

    Two pairs have to be worse by twice the threshold, and a single one has to be four times worse.
    """
    if row.method != "paired_t":
        return False
    pairs, least = pair_changes(row), worsening(row).threshold
    if len(pairs) == 1:
        least = _FAR_SLOWER if row.difference is None else math.inf
    elif len(pairs) == 2:
        least *= 2.0
    sign = 1.0 if row.direction == "lower" else -1.0
    few = 0 < len(pairs) < DECIDING_ROUNDS
    return few and all(sign * pair >= least for pair in pairs)


def _left_open(rows: Sequence[Comparison]) -> list[Reason]:
    """Return the reasons of rows whose status itself leaves the verdict open."""
    alone: list[Reason] = []
    counted: dict[str, list[Comparison]] = {}
    for row in rows:
        meaning = traits(row.status)
        if meaning.counted:
            counted.setdefault(meaning.leaves_open, []).append(row)
        elif meaning.leaves_open:
            alone.append(Reason(meaning.leaves_open, row.case, because=reason_of(row)))
    for code, alike in counted.items():
        names = first_of([row.case for row in alike], _MOST_NAMES)
        arguments: dict[str, Plain] = {"cases": len(alike), "names": names}
        alone.append(Reason(code, arguments=arguments, because=reason_of(alike[0])))
    return alone


def _severity(row: Comparison) -> float:
    """Return the change ÷ the threshold, infinite for counts that may not grow at all."""
    worse = worsening(row)
    if math.isnan(worse.change) or worse.threshold <= 0.0:
        return math.inf
    return worse.change / worse.threshold


def _change_reason(row: Comparison, *, warns: bool) -> Reason:
    """Return the row's change and its threshold as a reason of the verdict."""
    if row.difference is None and row.head is None:
        # graph breaks, where there is no graph on head to count them in
        return _row_reason("warned-uncounted" if warns else "uncounted", row)
    change: dict[str, Plain | None] = {"difference": row.difference, "unit": row.unit}
    if row.difference is None and row.ratio is not None:
        change = {"ratio": row.ratio}
    elif row.difference is None:
        before, after = (side.center if side else None for side in (row.base, row.head))
        change = {"before": before, "after": after, "unit": row.unit}
    known = {name: value for name, value in change.items() if value is not None}
    arguments = {**known, "threshold": row.threshold}
    return Reason("warned" if warns else "regressed", row.case, row.metric, arguments)


def _acceptance_reason(row: Comparison) -> Reason:
    """Return an accepted regression as a reason: by how much, by whom, and why."""
    moved = _change_reason(row, warns=True)
    arguments = moved.arguments or {"threshold": row.threshold, "unit": row.unit}
    accepted = row.accepted
    why = {"by": accepted.by, "because": accepted.because} if accepted else {}
    return Reason("accepted", row.case, row.metric, {**arguments, **why})


def _undecided_reason(row: Comparison) -> Reason:
    """Return an undecided row as a reason, with its estimate and interval if it has them."""
    code = LOOKS_SLOWER if _looks_slower(row) else "undecided"
    if row.ratio is None or row.ratio_lo is None or row.ratio_hi is None:
        return _row_reason(code, row)
    return _row_reason(code, row, ratio=row.ratio, lo=row.ratio_lo, hi=row.ratio_hi)


def _row_reason(code: str, row: Comparison, **arguments: Plain) -> Reason:
    return Reason(code, row.case, row.metric, arguments, because=reason_of(row))


def with_verdict(report: Report, policy: Policy) -> Report:
    """Return ``report`` with the verdict of ``policy`` on its rows, whatever its verdict was.

    An accepted row that no longer regressed loses its mark. A shard that has nothing to measure
    passes.
    """
    rows = tuple(
        replace(row, accepted=None) if row.accepted and row.status != "regressed" else row
        for row in report.results
    )
    if report.shard and not (rows or report.failures or report.interrupted):
        note = f"Shard {report.shard} has nothing to measure."
        passed = replace(report, verdict=Verdict("pass", ()), notes=(*report.notes, note))
        return replace(passed, explanations=(), why=())
    verdict = decide(
        rows,
        report.failures,
        policy,
        unconfirmed=any(
            row.confirmed is False and row.status == "regressed" and not row.accepted
            for row in rows
        ),
        interrupted=report.interrupted,
    )
    if not report.shard:  # only the report of all shards knows if anything gates or is exercised
        verdict = _with_exercise(require_gate(verdict, rows), report.findings, rows, policy)
        if policy.strict and verdict.status == "pass" and (state := rare_state(rows)):
            verdict = replace(verdict, findings=(*verdict.findings, state))
    return replace(report, results=rows, verdict=verdict)


def _with_exercise(
    verdict: Verdict, findings: Sequence[Finding], rows: Sequence[Comparison], policy: Policy
) -> Verdict:
    """Add to ``verdict`` that no case ran the changed code. A strict policy doesn't let that pass.

    Nothing is added if there is a new case, because a new case may run the changed code.
    """
    unused = next((known for known in findings if known.code == NOTHING_EXERCISED), None)
    if unused is None or any(row.status == "new" for row in rows):
        return verdict
    reason = Reason(unused.code, arguments=unused.arguments)
    if verdict.status == "pass" and not policy.strict:
        return Verdict("pass", (reason, *verdict.findings))
    return kept_from_passing(verdict, reason)
