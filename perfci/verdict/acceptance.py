"""Accept the regressions that the configuration names, and judge reports from elsewhere. Pure.

An accepted row stays ``regressed``, with all its numbers, but no longer fails the verdict.

A report was decided by the configuration of the checkout that was measured, which in a pull
request is the pull request's. So its rows are judged again by the policy here, and the worse
verdict counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Annotated

from perfci.finding import Finding, Reason, finding, stated
from perfci.metrics import METRICS
from perfci.model.case import Gate
from perfci.model.report import Accepted, Comparison, Report, Verdict
from perfci.values import UP_TO, Day, Text, about
from perfci.verdict.case_comparisons import empty_row, exact_status_at
from perfci.verdict.decision import kept_from_passing, placeholder, was_measured, with_verdict
from perfci.verdict.policy import Policy, threshold_at, worsening
from perfci.verdict.row_status import adjust, moved_untouched

_WORST_FIRST = ("fail", "error", "inconclusive", "pass")
_BEST_FIRST = ("improved", "unchanged", "inconclusive", "regressed")
"""Statuses of rows, by which ``_judged_here`` takes the worse."""
_STRICTEST_FIRST: tuple[Gate, ...] = ("fail", "warn", "info")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A regression that is meant, and no longer fails: one metric of one case."""

    case: Annotated[
        Text, about("The case, as the report names it. `*` is any text.", "encoder[batch=1]")
    ]
    metric: Annotated[Text, about("The metric, or `*`.", "latency_p50")]
    because: Annotated[Text, about("Why it is meant.", "masks are applied to every head now")]
    by: Annotated[Text, about("Who accepts it.", "Ada")] = ""
    up_to: Annotated[float | None, about("The largest change that is accepted.", "10%"), UP_TO] = (
        None
    )
    until: Annotated[Day, about("The last day on which it counts.", "2026-12-31")] = ""
    file: str = ""
    """The file of the configuration."""

    @property
    def terms(self) -> Accepted:
        """The part of it that an accepted row has."""
        return Accepted(self.because, self.by, self.up_to, self.until)

    def names(self, row: Comparison) -> bool:
        """Say whether ``row`` is one that this entry is about."""
        return _fits(self.case, row.case) and _fits(self.metric, row.metric)

    def says_as(self, other: Acceptance) -> bool:
        """Say whether both accept the same."""
        return replace(self, by="", file="") == replace(other, by="", file="")

    @property
    def is_bounded(self) -> bool:
        """Whether there is a change, or a day, beyond which it accepts nothing."""
        return self.up_to is not None or bool(self.until)


def accept(
    rows: Sequence[Comparison],
    lines: Sequence[Acceptance],
    today: str,
    *,
    refused: Sequence[Acceptance] = (),
    old: Sequence[Acceptance] = (),
    whole: bool = True,
) -> tuple[tuple[Comparison, ...], tuple[Finding, ...]]:
    """Return the rows, marked where ``lines`` accept them, and findings on the other lines.

    ``refused`` are lines of a fork's pull request, which accept nothing. ``old`` are those that
    base has, too: they have to be bounded, or they would let every later regression pass. Where a
    line that names a row doesn't count, the row gets a finding with the reason. Where a report is
    ``whole``, a line that names no row gives a finding.
    """
    used = set()
    judged = []
    for row in rows:
        line = _entry_of(row, lines)
        if line is None or row.status != "regressed":
            judged.append(row)
            continue
        used.add(line)
        why: Finding | None
        if line in refused:
            why = finding("accept-from-fork")
        elif line in old and not line.is_bounded:
            why = finding("accept-unbounded")
        else:
            why = _exceeded(line.terms, row, today)
        judged.append(_refusing(row, why) if why else replace(row, accepted=line.terms))
    findings = tuple(_unused(line, rows, whole=whole) for line in lines if line not in used)
    return tuple(judged), tuple(filter(None, findings))


def believed(
    report: Report, own: bool, lines: Sequence[Acceptance], today: str, policy: Policy
) -> Report:
    """Return ``report`` with only those rows accepted that someone with permission accepted.

    ``own``: its head is a commit of this repository, whose authors may accept. Regressions of a
    fork are accepted only by ``lines``, which stand in this repository's configuration.
    """
    marked = [row for row in report.results if row.accepted]
    if not marked:
        return report
    bounded = [line for line in lines if line.is_bounded]
    rows = tuple(
        _believed(row, own, _entry_of(row, bounded), today) if row.accepted else row
        for row in report.results
    )
    if rows == report.results:
        return report
    now = with_verdict(replace(report, results=rows), policy)
    # only a gating row makes the verdict worse; its other reasons (a missing shard) stay
    return now if now.verdict.status == "fail" else replace(now, verdict=report.verdict)


def _believed(row: Comparison, own: bool, here: Acceptance | None, today: str) -> Comparison:
    terms = row.accepted if own else here and here.terms
    why = _exceeded(terms, row, today) if terms else finding("accept-from-fork")
    if why or not terms:
        return _refusing(replace(row, accepted=None), why)
    return replace(row, accepted=terms)


def _entry_of(row: Comparison, lines: Iterable[Acceptance]) -> Acceptance | None:
    """Return the entry about ``row``. One with the row's own names goes first."""
    about = [line for line in lines if line.names(row)]
    return min(about, key=lambda line: f"{line.case} {line.metric}".count("*"), default=None)


def _fits(pattern: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None


def is_beyond(row: Comparison, up_to: float | None) -> bool:
    """Say whether the row got worse by more than ``up_to``, or by an unknown amount."""
    if up_to is None:
        return False
    worse = worsening(replace(row, threshold=up_to))
    return math.isnan(worse.change) or worse.change > worse.threshold


def _exceeded(terms: Accepted, row: Comparison, today: str) -> Finding | None:
    """Return why ``terms`` about the row don't accept it."""
    if terms.until and terms.until < today:
        return finding("accept-expired", until=terms.until)
    if is_beyond(row, terms.up_to):
        unit = {"unit": row.unit} if row.difference is not None else {}
        return finding("accept-exceeded", up_to=terms.up_to or 0.0, **unit)
    return None


def _refusing(row: Comparison, why: Finding | None) -> Comparison:
    # first, because the last finding is the reason for the status
    return replace(row, findings=(why, *row.findings)) if why else row


def _unused(line: Acceptance, rows: Iterable[Comparison], *, whole: bool) -> Finding | None:
    """Return that ``line`` accepts nothing, and a likely name; None if another part may use it."""
    rows = list(rows)
    rows_of_case = [row for row in rows if _fits(line.case, row.case)]
    for row in rows_of_case:
        if line.names(row):
            return finding("accept-unneeded", case=line.case, metric=line.metric, status=row.status)
    if rows_of_case:
        near = _nearest(line.metric, [row.metric for row in rows_of_case])
        return finding("accept-unknown", case=line.case, metric=line.metric, near=near)
    if not whole:
        return None
    near = _nearest(line.case, [row.case for row in rows])
    return finding("accept-unknown", case=line.case, metric=line.metric, near=near)


def _nearest(name: str, names: Iterable[str]) -> str:
    """Return the most similar of ``names``; for ``latency`` that is ``latency_p50``."""
    names = list(dict.fromkeys(names))
    longer = [known for known in names if known.startswith((f"{name}_", f"{name}["))]
    return next(iter(longer or get_close_matches(name, names, 1)), "")


def enforced(
    report: Report, policy: Policy, reported: Mapping[str, Collection[str] | None] | None = None
) -> Report:
    """Return ``report`` as ``policy`` judges its rows, where that makes it worse.

    A row has a gate and a threshold in ``report`` and in ``policy``: the stricter one counts. Only
    ``policy`` decides how an undecided row affects the verdict. ``reported`` has the metrics that
    each benchmark known here reports, None for all metrics. A gating metric that every case should
    have gets a ``removed`` row if the report lacks it. A shard that had nothing to measure passes
    everywhere.
    """
    status = report.verdict.status
    if status in {"fail", "error"} or (report.shard and not report.results):
        return report
    rows = _judged_here(report.results, policy)
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

    ``written`` has the benchmarks that every machine has, by their files. A file that can't be
    imported on head gets no rows: it is reported as a failure. A shard, or a report that lacks
    shards, is returned as it is: the other benchmarks are in other reports.
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
    """Return why a pass doesn't count: both sides ran a copy that isn't in ``installed``. Or ""."""
    copies = sorted({*report.installed}.difference(installed))
    if not copies:
        return ""
    return f"both sides ran one installed copy of {', '.join(copies)}, which isn't allowed here"


def with_caveat(report: Report, why: str) -> Report:
    """Return ``report``, kept from passing by ``why``, or unchanged if ``why`` is empty.

    A verdict worse than inconclusive stays, with ``why`` as its last reason.
    """
    if not why:
        return report
    return replace(report, verdict=kept_from_passing(report.verdict, stated(why)))


def _judged_here(rows: Sequence[Comparison], policy: Policy) -> tuple[Comparison, ...]:
    """Judge the rows all together, then perfci's own metrics among themselves. The worse counts.

    A pull request decides how many metrics a benchmark adds, and with each further metric Holm's
    correction lets more regressions pass.
    """
    base = {(row.case, row.metric): row.base.center for row in rows if row.base}
    held_to = [_by_the_stricter(row, policy, base) for row in rows]
    together = adjust(held_to, policy)
    built_in = [row for row in held_to if row.metric in METRICS]
    if len(built_in) == len(held_to):
        return together
    apart = iter(adjust(built_in, policy))
    return tuple(
        max(next(apart), row, key=_badness) if row.metric in METRICS else row for row in together
    )


def _badness(row: Comparison) -> int:
    return _BEST_FIRST.index(row.status) if row.status in _BEST_FIRST else -1


def _by_the_stricter(
    row: Comparison, policy: Policy, base: Mapping[tuple[str, str], float | None]
) -> Comparison:
    held_to = row
    if row.metric in METRICS:
        here = policy.for_case(METRICS[row.metric], row.case)
        value, whole = base.get((row.case, row.metric)), base.get((row.case, here.whole))
        held_to = replace(
            row,
            gate=min(row.gate, here.gate, key=_STRICTEST_FIRST.index),
            threshold=min(row.threshold, threshold_at(here, value, whole)),
        )
    if moved_untouched(held_to):
        return replace(held_to, status="inconclusive", findings=(finding("moved-in-one-round"),))
    if row.method != "exact":
        return held_to
    return replace(held_to, status=exact_status_at(row, held_to.threshold))


def _lost(
    rows: Sequence[Comparison], policy: Policy, reported: Mapping[str, Collection[str] | None]
) -> Iterator[Comparison]:
    there = {(row.case, row.metric) for row in rows}
    for case in dict.fromkeys(row.case for row in rows if was_measured(row)):
        only = reported.get(case.partition("[")[0])
        for metric in METRICS.values():
            here = policy.for_case(metric, case)
            expected = metric.always and (only is None or metric.name in only)
            if here.gate == "fail" and expected and (case, metric.name) not in there:
                why = finding("not-reported", metric=metric.name)
                yield empty_row(case, here, "removed", why)
