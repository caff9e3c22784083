"""A report as all formats for people show it. Each format lays it out, and escapes the texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from perfci.finding import LOOKS_SLOWER, NOTHING_EXERCISED, Reason
from perfci.model.case import Failure
from perfci.model.report import Report
from perfci.model.run import Side
from perfci.model.status import traits
from perfci.model.words import WARNINGS, reason_words, words
from perfci.report.groups import GROUPS, MOVED, group_of
from perfci.report.modes import ModeTable, mode_tables
from perfci.report.rows import Row
from perfci.report.why import CaseWhy, whys
from perfci.units import counted, format_duration, format_share
from perfci.verdict.decision import lost_metrics
from perfci.verdict.policy import worsening

_MARKS = {"fail": "\u274c", "error": "\U0001f4a5", "inconclusive": "\u2754", "pass": "\u2705"}
_WARNED_UNDECIDED = "warned-undecided"
WORST_FIRST = ("fail", "error", "inconclusive", "pass", "run")
_NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d+)\b")
"""Addresses, process ids and line numbers, which differ between two runs of the same failure."""


class ReportView:
    """A report's ``rows`` in ``groups``, each row in one of them, and everything around them.

    The groups of moved rows are sorted, the worst first, and undecided rows that look slower come
    first. Other groups keep the report's order.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        reasons = report.verdict.findings
        slower = {(known.case, known.metric) for known in reasons if known.code == LOOKS_SLOWER}
        self.rows = tuple(
            Row(row, index, (row.case, row.metric) in slower)
            for index, row in enumerate(report.results)
        )
        self.groups: dict[str, list[Row]] = {name: [] for name in GROUPS}
        for row in self.rows:
            self.groups[group_of(row)].append(row)
        for name in ("regressed", "warned", "improved"):
            self.groups[name].sort(
                key=lambda row: (traits(row.comparison.status).rank, -row.thresholds_moved)
            )
        self.groups["undecided"].sort(key=lambda row: not row.looks_slower)
        self.headline = _headline(self)
        self.reasons = _reasons(self)

    @cached_property
    def moved(self) -> list[Row]:
        """The rows of all groups with the title ``MOVED``."""
        moved = (name for name, group in GROUPS.items() if group.on_page == MOVED)
        return [row for name in moved for row in self.groups[name]]

    @cached_property
    def failed(self) -> frozenset[str]:
        """The cases that failed."""
        return frozenset(failure.case for failure in self.report.failures)

    @cached_property
    def failures(self) -> tuple[tuple[Failure, tuple[str, ...]], ...]:
        """The failures to show, each once with all cases that failed in the same way."""
        shared: dict[tuple[str, ...], tuple[Failure, list[str]]] = {}
        for failure in shown_failures(self.report):
            message = _NUMBER.sub("0", failure.message)
            key = (failure.side, failure.stage, failure.kind, message)
            shared.setdefault(key, (failure, []))[1].append(failure.case)
        return tuple((failure, tuple(cases)) for failure, cases in shared.values())

    def is_shown_as_failure(self, row: Row) -> bool:
        """Return whether the row only repeats one of ``failures``."""
        return row.comparison.status == "failed" and row.case in self.failed

    @cached_property
    def cases(self) -> int:
        """The number of cases."""
        return len({row.case for row in self.rows} | self.failed)

    @property
    def word(self) -> str:
        """The verdict's word, or ``run`` for a report that compares nothing."""
        return "run" if self.report.is_one_sided else self.report.verdict.status

    @property
    def part(self) -> str:
        """Says in brackets that this is one shard of a report, or is empty."""
        return f" (shard {self.report.shard} alone)" if self.report.shard else ""

    @property
    def title(self) -> str:
        """The headline, with the shard if this is one shard of a report."""
        return f"{self.headline}{self.part}"

    @property
    def mark(self) -> str:
        """The emoji before the verdict, empty for a run. A shard that passes gets no pass mark."""
        return mark_of(self.word, part=bool(self.part))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of reports that must not be taken for a whole, honest measurement."""
        report, found = self.report, []
        if report.injected:
            shares = ((name, format_share(share)) for name, share in report.injected.items())
            made = ", ".join(f"{name} +{share}" for name, share in shares)
            found.append(
                f"injected into head on purpose: {made}; this tests the gate, not the code"
            )
        if report.shard:
            found.append(
                f"shard {report.shard} alone: other cases were measured elsewhere, "
                "`perfci merge` joins all"
            )
        return tuple(found)

    @property
    def sides(self) -> tuple[Side | None, ...]:
        """The compared sides, base first; for a run alone the measured side."""
        report = self.report
        return (report.head,) if report.is_one_sided else (report.base, report.head)

    @cached_property
    def whys(self) -> tuple[CaseWhy, ...]:
        """Why cases moved."""
        return whys(self.report)

    def modes(self, *, every: bool = False) -> tuple[ModeTable, ...]:
        """Return the tables of modes. A comparison has only changed ones, unless ``every``."""
        every = every or self.report.is_one_sided
        return tuple(table for table in mode_tables(self.report.results) if table.changed or every)

    @property
    def rounds(self) -> str:
        """How many rounds were measured, in which time."""
        timing = self.report.timing
        return f"{counted(timing.rounds, 'round')} in {format_duration(timing.wall_s)}"

    @property
    def spent(self) -> str:
        """The rounds and the time, and the share of measuring."""
        timing = self.report.timing
        if timing.wall_s <= 0:
            return self.rounds
        share = format_share(round(timing.measured_s / timing.wall_s, 2))
        return f"{self.rounds}, {share} of it measuring"


def mark_of(word: str, *, part: bool = False) -> str:
    """Return the emoji before a verdict, or "" for a run. A part that passes gets no pass mark."""
    return _MARKS.get("inconclusive" if part and word == "pass" else word, "")


def side_words(side: Side | None) -> str:
    """Return a compared side in words."""
    if side is None:
        return "no baseline"
    short = side.sha[:12]
    text = side.rev if not short or short in side.rev else f"{side.rev} ({short})"
    return text + (" with uncommitted changes" if side.dirty else "")


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


def _headline(view: ReportView) -> str:
    """Return the most important fact of the report. The verdict's word isn't in it."""
    findings = view.report.verdict.findings
    if view.report.is_one_sided:
        return _measured(view)
    match view.report.verdict.status:
        case "fail":
            return _regressions(view)
        case "pass":
            passed = f"{_passed(view)}{_also(view)}"
            if findings and findings[0].code == NOTHING_EXERCISED:
                return f"{reason_words(findings[0])}; {passed}"
            return passed
        case _:
            return _open(view)


def _reasons(view: ReportView) -> tuple[str, ...]:
    """Return the verdict's reasons that are in no headline and no row.

    Warnings of undecided rows fail nothing, so they come last.
    """
    report = view.report
    listed = {(row.case, row.comparison.metric) for row in (*view.moved, *view.groups["undecided"])}
    findings = report.verdict.findings
    if report.verdict.status in {"error", "inconclusive"} or (
        findings and findings[0].code == NOTHING_EXERCISED
    ):
        findings = findings[1:]  # the headline states the first
    others = [
        reason
        for reason in findings
        if reason.code != _WARNED_UNDECIDED
        and (reason.case, reason.metric) not in listed
        and (reason.case not in view.failed or reason.code in WARNINGS)
    ]
    warned = [reason for reason in report.verdict.findings if reason.code == _WARNED_UNDECIDED]
    return tuple(map(reason_words, (*others, *warned)))


def _measured(view: ReportView) -> str:
    measured = {row.case for row in view.rows if row.comparison.head} - view.failed
    failures = f"; {len(view.failed)} failed" if view.failed else ""
    return f"{counted(len(measured), 'case')} measured, nothing compared{failures}"


def _regressions(view: ReportView) -> str:
    gating = [row for row in view.moved if row.comparison.status == "regressed" and row.gates]
    regressed = len({row.case for row in gating})
    text = f"{counted(len(gating), 'regression')} in {regressed} of {counted(view.cases, 'case')}"
    if view.failed:
        text += f", {len(view.failed)} failed"
    if not gating:
        return text
    which = ": " if len(gating) == 1 else "; furthest beyond its threshold: "
    worst, change = gating[0].comparison, gating[0].change
    if worst.findings and worst.head and worst.ratio is None and worst.difference is None:
        change = words(worst.findings[-1])
    return f"{text}{which}{worst.case} {worst.metric} {change}"


def _open(view: ReportView) -> str:
    """Return what leaves the verdict open: the first reason, and the number of further reasons.

    For undecided comparisons, return how many cases have some. Their rows give the reasons.
    """
    every = view.report.verdict.findings
    if not every:
        return f"no verdict on {counted(view.cases, 'case')}"
    if slower := [row for row in view.rows if row.looks_slower]:
        first = f"{slower[0].case} {slower[0].metric} {slower[0].change}"
        return f"looks slower, not decided: {first}{_more(slower)}"
    if every[0].code != "undecided":
        more = _more([reason for reason in every if reason.code == every[0].code])
        return _deciding(view, every[0]) + (f" ({more.strip()})" if more else "")
    open_rows = [reason for reason in every if reason.code == "undecided"]
    cases = len({reason.case for reason in open_rows})
    first = f"{open_rows[0].case} {open_rows[0].metric}"
    return f"{cases} of {counted(view.cases, 'case')} undecided: {first}{_more(open_rows)}"


def _more(items: Sequence[object]) -> str:
    """Return how many items there are besides the first one, or nothing."""
    return f" and {len(items) - 1} more" if len(items) > 1 else ""


def _deciding(view: ReportView, reason: Reason) -> str:
    """Return the deciding reason. If it is a failure, its message and log are shown below."""
    broken = (
        f'"{failure.case}" failed on {failure.side} in {failure.stage}'
        for failure in shown_failures(view.report)
        if failure.case == reason.case
    )
    return next(broken, None) or reason_words(reason)


def _passed(view: ReportView) -> str:
    """Return how many cases did not regress, and how many more ran no changed file."""
    compared = {row.case for row in view.rows} - _one_sided(view)
    untouched = compared & {row.case for row in view.groups["untouched"]}
    if compared and all(row.comparison.head is None for row in view.rows if row.case in compared):
        return f"nothing to measure in {counted(len(compared), 'case')}"
    others = compared - untouched
    text = f"no regression in {counted(len(others), 'case')}" if others or not untouched else ""
    more = f"{counted(len(untouched), 'case')} ran no changed file" if untouched else ""
    return "; ".join(filter(None, (text, more)))


def _also(view: ReportView) -> str:
    """Return the counts that a pass alone hides. A case that got slower passes if it is removed."""
    moved = [row.comparison for row in view.moved]
    accepted = sum(row.accepted is not None for row in moved)
    warned = sum(row.status == "regressed" for row in moved) - accepted
    warned += sum(known.code == _WARNED_UNDECIDED for known in view.report.verdict.findings)
    counts = {
        "accepted regression": accepted,
        "improvement": sum(row.status == "improved" for row in moved),
        "warning": warned,
        "undecided slow-down": sum(
            worsening(row.comparison).lo > 0.0 for row in view.groups["undecided"]
        ),
        "removed case": len({row.case for row in view.groups["removed"]} & _one_sided(view)),
        "new case": len({row.case for row in view.groups["new"]}),
        "skipped case": len(view.report.skipped),
    }
    parts = [counted(number, noun) for noun, number in counts.items() if number]
    if lost := lost_metrics(view.report.results):
        which = f"{lost[0].case} {lost[0].metric}{_more(lost)}"
        parts.append(f"{counted(len(lost), 'removed metric')} ({which})")
    return "; " + ", ".join(parts) if parts else ""


def _one_sided(view: ReportView) -> set[str]:
    """Return the cases all of whose rows are ``new`` or ``removed``: one side lacks them."""
    lone = ("removed", "new")
    kept = {row.case for name, group in view.groups.items() if name not in lone for row in group}
    return {row.case for name in lone for row in view.groups[name]} - kept
