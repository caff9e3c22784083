"""The outline of a report in every format: what comes first, what next, and what is folded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfci.metrics import METRICS
from perfci.model.case import Failure
from perfci.model.finding import LOOKS_SLOWER, NOTHING_EXERCISED, WARNS, Reason
from perfci.model.report import Comparison, Report
from perfci.model.status import traits
from perfci.model.words import reason_words
from perfci.report.rows import change_text, size
from perfci.units import counted, format_change, format_share
from perfci.verdict.decision import lost_metrics
from perfci.verdict.policy import threshold_of, worse_by

_WARNED_UNDECIDED = "warned-undecided"
_MOST_NAMES = 5
"""Cases or files that a sentence names. The rest are counted."""
_NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d+)\b")
"""Addresses, process ids and line numbers, which differ between two runs of the same failure."""


def shown_failures(report: Report) -> tuple[Failure, ...]:
    """Return the failures to show. The same failure on both sides is one, of ``base and head``.

    A case that failed on base only has a ``new`` row, which gives the reason. It isn't shown again.
    """
    new = {row.case for row in report.results if row.status == "new"}
    shown: dict[tuple[str, ...], Failure] = {}
    for failure in report.failures:
        if failure.side == "base" and failure.case in new:
            continue
        alike = (failure.case, failure.stage, failure.kind)
        before = shown.get(alike)
        if before is None:
            shown[alike] = failure
        elif failure.side not in before.side.split():
            shown[alike] = replace(before, side=f"{before.side} and {failure.side}")
    return tuple(shown.values())


def grouped_failures(failures: Sequence[Failure]) -> tuple[tuple[Failure, tuple[str, ...]], ...]:
    """Return each failure once, with all cases that failed in the same way."""
    shared: dict[tuple[str, ...], tuple[Failure, list[str]]] = {}
    for failure in failures:
        message = _NUMBER.sub("0", failure.message)
        key = (failure.side, failure.stage, failure.kind, message)
        shared.setdefault(key, (failure, []))[1].append(failure.case)
    return tuple((failure, tuple(cases)) for failure, cases in shared.values())


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A group of rows, and how each format shows it.

    The comment folds the group under ``heading``. The fold's own line counts its rows with the
    words ``counted``. ``layout`` picks the template's form: ``compared`` is a table, ``stated`` a
    list. The page shows the rows open under the title ``on_page``. A terminal lists the metrics of
    a case after ``in_terminal``. If one of these two is empty, that format doesn't list the group
    by itself. ``last``: the group comes last in the fold.
    """

    heading: str
    counted: str
    layout: str
    on_page: str = ""
    in_terminal: str = ""
    last: bool = False


MOVED = "What moved"
GROUPS: dict[str, RowGroup] = {
    "regressed": RowGroup("More that regressed", "more regressed", "moved", MOVED),
    "warned": RowGroup("Warnings", "warned", "moved", MOVED),
    "improved": RowGroup("Improved", "improved", "moved", MOVED),
    "undecided": RowGroup("Not decided", "not decided", "compared", "Not decided", "not decided"),
    "unseen": RowGroup("Too noisy to say, and fails nothing", "too noisy to say", "counted"),
    "informative": RowGroup("Moved, for information", "for information", "compared"),
    "not_comparable": RowGroup("Not comparable", "not comparable", "stated"),
    "not_measured": RowGroup("Cases not measured", "cases not measured", "named"),
    "new": RowGroup("New", "new", "measured"),
    "removed": RowGroup("Removed", "removed", "listed"),
    "unchanged": RowGroup("Unchanged", "unchanged", "compared", last=True),
    "untouched": RowGroup("Ran no changed file", "ran no changed file", "named"),
}
"""All groups by name, in a report's order."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A report's rows in groups by what a reader does with them. Each row is in one group."""

    report: Report
    groups: Mapping[str, Sequence[Comparison]]
    cases: int

    @property
    def moved(self) -> tuple[Comparison, ...]:
        """Return the rows of all groups with the title ``MOVED``, the worst first."""
        return tuple(
            row
            for name, rows in self.groups.items()
            if GROUPS[name].on_page == MOVED
            for row in rows
        )

    @property
    def undecided(self) -> Sequence[Comparison]:
        """Return the undecided rows that may fail the report."""
        return self.groups["undecided"]


def outline(report: Report) -> Outline:
    """Sort the rows into groups. Moved rows come worst first. Other rows keep their order."""
    groups: dict[str, list[Comparison]] = {name: [] for name in GROUPS}
    for row in report.results:
        groups[group_of(row)].append(row)
    for name in ("regressed", "warned", "improved"):
        groups[name].sort(key=lambda row: (traits(row.status).rank, -size(row)))
    failed = {failure.case for failure in report.failures}
    return Outline(report, groups, len({row.case for row in report.results} | failed))


def group_of(row: Comparison) -> str:
    """Return the name of the row's group."""
    kind = traits(row.status)
    match kind.group:
        case "undecided":
            return "undecided" if gates(row) and _matters(row) else "unseen"
        case "moved" if row.follows or (row.gate == "info" and row.status != "failed"):
            return "informative"
        case "moved" if kind.sense == "better":
            return "improved"
        case "moved":
            return "regressed" if gates(row) or row.status == "failed" else "warned"
    return kind.group


def headline(rows: Outline) -> str:
    """Return the most important fact of the report. The verdict's word isn't in it."""
    report, reasons = rows.report, rows.report.verdict.findings
    if report.is_one_sided:
        return _measured(report)
    match report.verdict.status:
        case "fail":
            return _regressions(rows)
        case "pass":
            passed = f"{_passed(rows)}{_also(rows)}"
            if reasons and reasons[0].code == NOTHING_EXERCISED:
                return f"{reason_words(reasons[0])}; {passed}"
            return passed
        case _:
            return _open(rows)


def _measured(report: Report) -> str:
    failed = {failure.case for failure in report.failures}
    measured = counted(len({row.case for row in report.results if row.head} - failed), "case")
    failures = f"; {len(failed)} failed" if failed else ""
    return f"{measured} measured, nothing compared{failures}"


def _regressions(rows: Outline) -> str:
    gating = [row for row in rows.moved if row.status == "regressed" and gates(row)]
    regressed = len({row.case for row in gating})
    text = f"{counted(len(gating), 'regression')} in {regressed} of {counted(rows.cases, 'case')}"
    if failed := {failure.case for failure in rows.report.failures}:
        text += f", {len(failed)} failed"
    if not gating:
        return text
    worst = gating[0]
    which = ": " if len(gating) == 1 else "; furthest beyond its threshold: "
    return f"{text}{which}{worst.case} {worst.metric} {change_text(worst)}"


def _open(rows: Outline) -> str:
    """Return what leaves the verdict open: the first reason, and the number of further reasons.

    For undecided comparisons, return how many cases have some. Their rows give the reasons.
    """
    every = rows.report.verdict.findings
    if not every:
        return f"no verdict on {counted(rows.cases, 'case')}"
    if slower := [reason for reason in every if reason.code == LOOKS_SLOWER]:
        more = f" and {len(slower) - 1} more" if len(slower) > 1 else ""
        ratio = slower[0].arguments.get("ratio")
        change = format_change(ratio) if isinstance(ratio, float) else ""
        return f"looks slower, not decided: {slower[0].case} {slower[0].metric} {change}{more}"
    if every[0].code != "undecided":
        more = f" (and {len(every) - 1} more)" if len(every) > 1 else ""
        return _deciding(rows.report, every[0]) + more
    reasons = [reason for reason in every if reason.code == "undecided"]
    cases = len({reason.case for reason in reasons})
    more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    first = f"{reasons[0].case} {reasons[0].metric}"
    return f"{cases} of {counted(rows.cases, 'case')} undecided: {first}{more}"


def _deciding(report: Report, reason: Reason) -> str:
    """Return the deciding reason. If it is a failure, its message and log are shown below."""
    broken = (
        f'"{failure.case}" failed on {failure.side} in {failure.stage}'
        for failure in shown_failures(report)
        if failure.case == reason.case
    )
    return next(broken, None) or reason_words(reason)


def _passed(rows: Outline) -> str:
    """Return how many cases did not regress, and how many more ran no changed file."""
    report = rows.report
    compared = {row.case for row in report.results} - _one_sided(rows)
    untouched = compared & {row.case for row in rows.groups["untouched"]}
    if compared and all(row.head is None for row in report.results if row.case in compared):
        return f"nothing to measure in {counted(len(compared), 'case')}"
    others = compared - untouched
    text = f"no regression in {counted(len(others), 'case')}" if others or not untouched else ""
    more = f"{counted(len(untouched), 'case')} ran no changed file" if untouched else ""
    return "; ".join(filter(None, (text, more)))


def unseen_text(rows: Sequence[Comparison]) -> str:
    """Return one line on the undecided metrics that fail nothing, and how to see more of them."""
    by_metric: dict[str, list[Comparison]] = {}
    for row in rows:
        by_metric.setdefault(row.metric, []).append(row)
    texts = [_unseen(metric, rows_of_metric) for metric, rows_of_metric in by_metric.items()]
    return f"{'; '.join(texts)}. More `--rounds` show smaller changes." if texts else ""


def _unseen(metric: str, rows: Sequence[Comparison]) -> str:
    detectable = [row.detectable for row in rows if row.detectable is not None]
    seen = ""
    if detectable:
        seen = f", at worst a change of {format_share(max(detectable))} was in sight"
    return f"{metric} in {counted(len(rows), 'case')}{seen}"


def injected_text(report: Report) -> str:
    """Return a warning of metrics that were made worse on purpose, or ""."""
    made = ", ".join(f"{name} +{format_share(share)}" for name, share in report.injected.items())
    return (
        f"injected into head on purpose: {made}; this tests the gate, not the code" if made else ""
    )


def part_text(report: Report) -> str:
    """Return a warning that this is only one shard of a report, or ""."""
    return (
        f"shard {report.shard} alone: other cases were measured elsewhere, `perfci merge` joins all"
        if report.shard
        else ""
    )


def undecided_warnings(report: Report) -> tuple[str, ...]:
    """Return the verdict's warnings of undecided rows. They fail nothing, so they come last."""
    return tuple(
        reason_words(reason)
        for reason in report.verdict.findings
        if reason.code == _WARNED_UNDECIDED
    )


def other_reasons(rows: Outline) -> tuple[str, ...]:
    """Return the verdict's reasons that are in no headline, row, or ``undecided_warnings``."""
    report = rows.report
    listed = {(row.case, row.metric) for row in (*rows.moved, *rows.undecided)}
    failed = {failure.case for failure in report.failures}
    reasons = report.verdict.findings
    stated = bool(reasons) and reasons[0].code == NOTHING_EXERCISED
    if report.verdict.status in {"error", "inconclusive"} or stated:
        reasons = reasons[1:]
    return tuple(
        reason_words(reason)
        for reason in reasons
        if reason.code != _WARNED_UNDECIDED
        and (reason.case, reason.metric) not in listed
        and (reason.case not in failed or reason.code in WARNS)
    )


def _matters(row: Comparison) -> bool:
    """Say whether an undecided row may keep a report from passing, or looks clearly worse."""
    metric = METRICS.get(row.metric)
    change, _, _ = worse_by(row)
    looks_worse = change is not None and change >= threshold_of(row)
    return metric is None or metric.undecided == "inconclusive" or looks_worse


def gates(row: Comparison) -> bool:
    """Return whether this row can fail the report."""
    return row.gate == "fail" and not row.accepted


def _also(rows: Outline) -> str:
    """Return the counts that a pass alone hides. A case that got slower passes if it is removed."""
    improved = sum(row.status == "improved" for row in rows.moved)
    accepted = sum(row.accepted is not None for row in rows.moved)
    warned = sum(row.status == "regressed" for row in rows.moved) - accepted
    warned += sum(known.code == _WARNED_UNDECIDED for known in rows.report.verdict.findings)
    counts = {
        "accepted regression": accepted,
        "improvement": improved,
        "warning": warned,
        "undecided slow-down": sum((worse_by(row)[1] or 0.0) > 0.0 for row in rows.undecided),
        "removed case": len({row.case for row in rows.groups["removed"]} & _one_sided(rows)),
        "new case": len({row.case for row in rows.groups["new"]}),
        "skipped case": len(rows.report.skipped),
    }
    parts = [counted(number, what) for what, number in counts.items() if number]
    if lost := lost_metrics(rows.report.results):
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        which = f"{lost[0].case} {lost[0].metric}{more}"
        parts.append(f"{counted(len(lost), 'removed metric')} ({which})")
    return "; " + ", ".join(parts) if parts else ""


def _one_sided(rows: Outline) -> set[str]:
    """Return the cases all of whose rows are ``new`` or ``removed``: one side lacks them."""
    lone = ("removed", "new")
    kept = {row.case for name, group in rows.groups.items() if name not in lone for row in group}
    return {row.case for name in lone for row in rows.groups[name]} - kept
