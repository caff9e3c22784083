"""Accepted regressions: the rows that lines of the configuration let pass, and no others. Pure.

A row that is accepted stays ``regressed``, with all its numbers; it no longer fails the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from perfci.model.finding import Finding, finding
from perfci.model.report import Accepted, Comparison, Report
from perfci.model.words import words
from perfci.verdict.decision import with_verdict
from perfci.verdict.policy import Policy, threshold_of, worse_by


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A line of the configuration, by which the regression of ``metric`` in ``case`` is meant.

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
        bare, other_bare = (
            replace(line, by="", file="", first=0, last=0) for line in (self, other)
        )
        return bare == other_bare

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
    base has, too. Without a bound they would let every later regression pass. A row has the reason
    why a line that names it doesn't count. Where a report is ``whole``, a line that names no row
    gives a finding.
    """
    of_row = _by_row(lines)
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
    return tuple(judged), tuple(filter(None, findings))


def believed(
    report: Report, own: bool, lines: Sequence[Acceptance], today: str, policy: Policy
) -> Report:
    """Return ``report`` with only those rows accepted that someone with permission accepted.

    ``own``: its head is of this repository, whose authors may accept. What was measured of a fork
    is accepted only by ``lines``, which stand here.
    """
    marked = [row for row in report.results if row.accepted]
    if not marked:
        return report
    here = _by_row(line for line in lines if line.is_bounded)
    rows = tuple(
        _believed(row, own, here.get((row.case, row.metric)), today) if row.accepted else row
        for row in report.results
    )
    if rows == report.results:
        return report
    now = with_verdict(replace(report, results=rows), policy)
    # only a gating row makes it worse; all else that the verdict says, a missing shard, stays
    return now if now.verdict.status == "fail" else replace(now, verdict=report.verdict)


def _believed(row: Comparison, own: bool, here: Acceptance | None, today: str) -> Comparison:
    mark = row.accepted
    if own and mark is not None:
        line = Acceptance(row.case, row.metric, mark.because, mark.by, mark.up_to, until=mark.until)
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

    A part of a measurement stays as it is, as the whole is not known. ``judge`` may make a row
    regressed that wasn't, so rows of any status are marked first, and those that did not regress
    lose their mark in the end.
    """
    if not lines or report.shard or report.missing:
        return judge(report)
    of_row = _by_row(lines)
    rows = tuple(
        replace(row, accepted=_accepted(line))
        if not row.accepted and (line := of_row.get((row.case, row.metric)))
        else row
        for row in report.results
    )
    marked = replace(report, results=rows)
    if report.verdict.status == "fail":
        marked = replace(marked, verdict=with_verdict(marked, policy).verdict)
    judged = judge(marked)
    rows = tuple(
        row if row.status == "regressed" else replace(row, accepted=None) for row in judged.results
    )
    unused = (_unused(line, rows, whole=True) for line in lines)
    findings = tuple(each for each in unused if each and each.code == "accept-unknown")
    return replace(
        judged,
        results=rows,
        findings=(*judged.findings, *findings),
        notes=(*judged.notes, *map(words, findings)),
    )


def _by_row(lines: Iterable[Acceptance]) -> dict[tuple[str, str], Acceptance]:
    return {(line.case, line.metric): line for line in lines}


def is_beyond(row: Comparison, up_to: float | None) -> bool:
    """Say whether the row got worse by more than ``up_to``, or by an unknown amount."""
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
    longer = [known for known in names if known.startswith((f"{name}_", f"{name}["))]
    return next(iter(longer or get_close_matches(name, names, 1)), "")
