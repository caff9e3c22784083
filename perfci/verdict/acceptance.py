"""Accepted regressions: which rows a project lets pass, and no more than its lines name. Pure.

A row that is accepted stays ``regressed``, with all its numbers; it no longer fails the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from perfci.model.finding import Finding, finding
from perfci.model.report import Accepted, Comparison, Report
from perfci.model.words import words
from perfci.verdict.decision import build_report, decide_on, opened
from perfci.verdict.policy import Policy, threshold_of, worse_by


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One line of the configuration: the regression of ``metric`` in ``case`` is meant.

    ``up_to`` is the largest change that it accepts, as a threshold is written: a share, or an
    amount. ``until`` is its last day (ISO 8601); both may be absent. It stands in ``file`` from
    line ``first`` to ``last``, where that is known.
    """

    case: str
    metric: str
    because: str
    by: str = ""
    up_to: float | None = None
    until: str = ""
    file: str = ""
    first: int = 0
    last: int = 0

    def says_as(self, other: Acceptance) -> bool:
        """Say whether both accept the same."""
        mine, others = (
            (one.case, one.metric, one.because, one.up_to, one.until) for one in (self, other)
        )
        return mine == others

    @property
    def is_bounded(self) -> bool:
        """Whether there is a change, or a day, beyond which it accepts nothing."""
        return self.up_to is not None or bool(self.until)


@dataclass(frozen=True, slots=True)
class Applied:
    """The rows with what was accepted of them, and what has to be said of other lines."""

    rows: tuple[Comparison, ...]
    findings: tuple[Finding, ...]


def accept(
    rows: Sequence[Comparison],
    lines: Sequence[Acceptance],
    today: str,
    *,
    refused: Sequence[Acceptance] = (),
    old: Sequence[Acceptance] = (),
    whole: bool = True,
) -> Applied:
    """Mark the rows that ``lines`` accept on ``today``.

    ``refused`` are lines of a fork's pull request, which accept nothing. ``old`` are those that
    base has, too: without a bound they would let every later regression pass. A row says why a line
    that names it doesn't count. Where a report is ``whole``, a line that names no row is said.
    """
    of_row = {(one.case, one.metric): one for one in lines}
    used = set()
    judged = []
    for row in rows:
        line = of_row.get((row.case, row.metric))
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
            why = _exceeded(line, row, today)
        judged.append(_refusing(row, why) if why else replace(row, accepted=_accepted(line)))
    findings = tuple(_unused(line, rows, whole=whole) for line in lines if line not in used)
    return Applied(tuple(judged), tuple(one for one in findings if one))


def believed(
    report: Report, own: bool, lines: Sequence[Acceptance], today: str, policy: Policy
) -> Report:
    """Return ``report`` with no row accepted but by somebody who may.

    ``own``: its head is of this repository, whose authors may accept. What was measured of a fork
    is accepted only by ``lines``, which stand here.
    """
    marked = [row for row in report.results if row.accepted]
    if not marked:
        return report
    here = {(one.case, one.metric): one for one in lines if one.is_bounded}
    rows = tuple(
        _believed(row, own, here.get((row.case, row.metric)), today) if row.accepted else row
        for row in report.results
    )
    if rows == report.results:
        return report
    measured, was = opened(report)
    now = decide_on(measured, replace(was.judged, rows=rows), policy)
    # only a gating row makes it worse; all else that the verdict says, a missing shard, stays
    verdict = now.verdict if now.verdict.status == "fail" else was.verdict
    return build_report(measured, replace(was, judged=now.judged, verdict=verdict))


def _believed(row: Comparison, own: bool, here: Acceptance | None, today: str) -> Comparison:
    said = row.accepted
    if own and said is not None:
        line = Acceptance(row.case, row.metric, said.because, said.by, said.up_to, until=said.until)
        why = _exceeded(line, row, today)
    elif here is not None:
        line, why = here, _exceeded(here, row, today)
    else:
        line, why = None, finding("accept-from-fork")
    bare = replace(row, accepted=None)
    return _refusing(bare, why) if why or not line else replace(row, accepted=_accepted(line))


def accepted_here(
    report: Report,
    lines: Sequence[Acceptance],
    policy: Policy,
    judge: Callable[[Report], Report],
) -> Report:
    """Return ``report`` as ``judge`` judges it, with the regressions accepted that ``lines`` name.

    A part of a measurement stays as it is: nobody has seen the whole. ``judge`` may make a row
    regressed that wasn't, so rows of any status are marked first, and those that did not regress
    lose their mark in the end.
    """
    if not lines or report.shard or report.missing:
        return judge(report)
    of_row = {(one.case, one.metric): one for one in lines}
    rows = tuple(
        replace(row, accepted=_accepted(line))
        if not row.accepted and (line := of_row.get((row.case, row.metric)))
        else row
        for row in report.results
    )
    measured, was = opened(report)
    verdict = was.verdict
    if verdict.status == "fail":
        verdict = decide_on(measured, replace(was.judged, rows=rows), policy).verdict
    marked = replace(was, judged=replace(was.judged, rows=rows), verdict=verdict)
    judged = judge(build_report(measured, marked))
    measured, now = opened(judged)
    rows = tuple(
        row if row.status == "regressed" else replace(row, accepted=None) for row in judged.results
    )
    unused = [_unused(one, rows, whole=True) for one in lines]
    findings = tuple(one for one in unused if one and one.code == "accept-unknown")
    notes = tuple(map(words, findings))
    return build_report(
        replace(measured, findings=(*measured.findings, *findings)),
        replace(now, judged=replace(now.judged, rows=rows, notes=notes)),
    )


def is_beyond(row: Comparison, up_to: float | None) -> bool:
    """Say whether the row got worse by more than ``up_to``, or by nobody knows how much."""
    if up_to is None:
        return False
    worse, _, _ = worse_by(row)
    return worse is None or worse > threshold_of(replace(row, threshold=up_to))


def _exceeded(line: Acceptance, row: Comparison, today: str) -> Finding | None:
    """Return why ``line``, which names the row, doesn't accept it."""
    if line.until and line.until < today:
        return finding("accept-expired", until=line.until)
    if is_beyond(row, line.up_to):
        unit = {"unit": row.unit} if row.difference is not None else {}
        return finding("accept-exceeded", up_to=line.up_to or 0.0, **unit)
    return None


def _accepted(line: Acceptance) -> Accepted:
    return Accepted(line.because, line.by, line.up_to, line.until)


def _refusing(row: Comparison, why: Finding | None) -> Comparison:
    # before the reason for the status, which stands last
    return replace(row, findings=(why, *row.findings)) if why else row


def _unused(line: Acceptance, rows: Iterable[Comparison], *, whole: bool) -> Finding | None:
    """Return that ``line`` accepts nothing, and what it may mean; None where it may elsewhere."""
    rows = list(rows)
    mine = [row for row in rows if row.case == line.case]
    for row in mine:
        if row.metric == line.metric:
            return finding("accept-unneeded", case=line.case, metric=line.metric, status=row.status)
    if mine:
        near = _nearest(line.metric, [row.metric for row in mine])
        return finding("accept-unknown", case=line.case, metric=line.metric, near=near)
    if not whole:
        return None
    near = _nearest(line.case, [row.case for row in rows])
    return finding("accept-unknown", case=line.case, metric=line.metric, near=near)


def _nearest(name: str, names: Iterable[str]) -> str:
    """Return the most like name; ``latency`` is ``latency_p50``."""
    names = list(dict.fromkeys(names))
    longer = [one for one in names if one.startswith((f"{name}_", f"{name}["))]
    return next(iter(longer or get_close_matches(name, names, 1)), "")
