"""This checkout's policy, enforced on a verdict reached elsewhere: never laxer. Pure.

A report was decided by the configuration of the checkout that was measured, which in a pull
request is the pull request's. So its rows are judged again by the policy here, and the worse
verdict counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from perfci.metrics import METRICS
from perfci.model.case import Gate, Metric
from perfci.model.finding import Reason, finding, stated
from perfci.model.report import Comparison, Report, Verdict
from perfci.verdict.comparisons import empty_row, judge_exactly
from perfci.verdict.decision import placeholder, was_measured, with_verdict
from perfci.verdict.judgement import readjust
from perfci.verdict.policy import MetricPolicy, Policy, metric_policy, threshold_of, worse_by

_WORST_FIRST = ("fail", "error", "inconclusive", "pass")
_BEST_FIRST = ("improved", "unchanged", "inconclusive", "regressed")
_STRICTEST_FIRST: tuple[Gate, ...] = ("fail", "warn", "info")


def enforced(
    report: Report, policy: Policy, reported: Mapping[str, Collection[str] | None] | None = None
) -> Report:
    """Return ``report`` as ``policy`` judges its rows, where that makes it worse.

    Of the two gates and the two thresholds of a row the stricter one counts; what an undecided
    row does to the verdict is decided here alone. ``reported`` are the benchmarks that are known
    here, with the metrics that each reports, None for all: what every case of theirs has and the
    report lacks is ``removed``. A shard that had nothing to measure passes everywhere.
    """
    status = report.verdict.status
    if status in {"fail", "error"} or (report.shard and not report.results):
        return report
    rows = _judged(report.results, policy)
    rows += tuple(
        row for row in _lost(rows, policy, reported or {}) if row.metric not in report.not_measured
    )
    now = with_verdict(replace(report, results=rows), policy)
    verdict = now.verdict
    if _WORST_FIRST.index(verdict.status) < _WORST_FIRST.index(status):
        reason = Reason("elsewhere", arguments={"status": status})
        return replace(now, verdict=Verdict(verdict.status, (*verdict.findings, reason)))
    changed = status == "pass" and verdict.findings != report.verdict.findings
    return now if changed else report


def with_unreported(
    report: Report, written: Mapping[str, Collection[str]], policy: Policy
) -> Report:
    """Return ``report`` with a ``removed`` row for each benchmark that it does not mention.

    ``written`` are those that every machine has here, by their files; a file that can't be
    imported on head is reported as a failure. A shard, or a report that lacks shards, is returned
    as it is: the other benchmarks are in other reports.
    """
    if report.shard or report.missing:
        return report
    cases = [row.case for row in report.results]
    cases += [failure.case for failure in report.failures]
    reported = {case.partition("[")[0] for case in (*cases, *report.skipped)}
    broken = {
        file
        for failure in report.failures
        if failure.side != "base"
        for file in failure.case.split(", ")
    }
    lacking = dict.fromkeys(
        name
        for file, names in written.items()
        if file not in broken
        for name in names
        if name not in reported
    )
    rows = (placeholder(name, "removed", policy, finding("unreported")) for name in lacking)
    return replace(report, results=(*report.results, *rows))


def caveat_of_copies(report: Report, installed: Collection[str]) -> str:
    """Return why a pass does not count: both sides ran a copy that is not among ``installed``."""
    head = report.ran.head if report.ran else None
    copies = sorted({*(head.installed if head else ())}.difference(installed))
    if not copies:
        return ""
    return f"both sides ran one installed copy of {', '.join(copies)}, which isn't allowed here"


def with_caveat(report: Report, why: str) -> Report:
    """Return ``report``, kept from passing by ``why``; unchanged where that is empty.

    A verdict worse than inconclusive stays, with ``why`` as its last reason.
    """
    if not why:
        return report
    status, findings = report.verdict.status, report.verdict.findings
    if status in {"fail", "error"}:
        verdict = Verdict(status, (*findings, stated(why)))
    else:
        verdict = Verdict("inconclusive", (stated(why), *findings))
    return replace(report, verdict=verdict)


def _judged(rows: Sequence[Comparison], policy: Policy) -> tuple[Comparison, ...]:
    """Judge the rows all together, and perfci's own metrics among themselves. The worse counts.

    A pull request decides how many metrics a benchmark adds, and each eases Holm's correction.
    """
    base = {(row.case, row.metric): row.base.center for row in rows if row.base}
    held_to = [_by_the_stricter(row, policy, base) for row in rows]
    together = readjust(held_to, policy)
    ours = [row for row in held_to if row.metric in METRICS]
    if len(ours) == len(held_to):
        return together
    own = iter(readjust(ours, policy))
    return tuple(
        max(next(own), row, key=_badness) if row.metric in METRICS else row for row in together
    )


def _badness(row: Comparison) -> int:
    return _BEST_FIRST.index(row.status) if row.status in _BEST_FIRST else -1


def _by_the_stricter(
    row: Comparison, policy: Policy, base: Mapping[tuple[str, str], float | None]
) -> Comparison:
    here = _here(row.case, METRICS.get(row.metric), policy)
    if here is None:
        return row
    own, whole = base.get((row.case, row.metric)), base.get((row.case, here.whole))
    held_to = replace(
        row,
        gate=min(row.gate, here.gate, key=_STRICTEST_FIRST.index),
        threshold=min(row.threshold, here.threshold_for(own, whole)),
    )
    if row.method != "exact" or held_to.threshold == row.threshold:
        return held_to
    change, _, _ = worse_by(held_to)
    return replace(held_to, status=judge_exactly(row, change, threshold_of(held_to)))


def _lost(
    rows: Sequence[Comparison], policy: Policy, reported: Mapping[str, Collection[str] | None]
) -> Iterator[Comparison]:
    there = {(row.case, row.metric) for row in rows}
    for case in dict.fromkeys(row.case for row in rows if was_measured(row)):
        only = reported.get(case.partition("[")[0])
        for metric in METRICS.values():
            here = _here(case, metric, policy)
            expected = metric.always and (only is None or metric.name in only)
            if here and here.gate == "fail" and expected and (case, metric.name) not in there:
                why = finding("not-reported", metric=metric.name)
                yield empty_row(case, metric, here, "removed", why)


def _here(case: str, metric: Metric | None, policy: Policy) -> MetricPolicy | None:
    """Return what ``policy`` says of a case's metric; None for one that it doesn't know."""
    if metric is None:
        return None
    configured = policy.metrics.get(metric.name) or metric_policy(metric)
    own = policy.thresholds.get(case.partition("[")[0], {}).get(metric.name)
    return configured if own is None else configured.with_threshold(own)
