"""One comparison in words: change, interval, test, recorded values, and why it moved.

The texts aren't escaped: each renderer does that itself.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from perfci.instruments import words
from perfci.metrics import METRICS
from perfci.model.finding import Difference, Why
from perfci.model.report import Accepted, Comparison, Estimate, Method, Report
from perfci.model.status import Cause
from perfci.report.clean import clean_line
from perfci.stats.evidence import magnitude
from perfci.units import (
    counted,
    format_change,
    format_difference,
    format_interval,
    format_share,
    format_value,
)
from perfci.verdict.why import leading

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SELECTABLE = re.compile(r"[^\s()]+")
"""A case's id that ``-k`` takes as a single word."""
_OPERATORS = frozenset({"and", "or", "not"})
"""Words that ``-k`` takes for operators."""
_SHA_DIGITS = 12
"""Digits of a hash in a replay line for people."""
_MOST_CASES = 4
"""Cases in a replay line."""
_TEST_NAMES: dict[Method, str] = {
    "paired_t": "paired t",
    "welch_t": "Welch's t",
    "exact": "exact",
    "none": "",
}
BLAME: dict[Cause, str] = {
    "code": "what differs between the sides",
    "noise": "variance between processes",
    "machine": "something else ran, or the machine throttled",
    "method": "how it was measured: too little, too coarse, or not alike",
}
"""The meaning of each cause but the empty one."""
UNEXPLAINED = "nothing that differs inside explains it"


def change_text(row: Comparison) -> str:
    """Return the change head against base: ``+5.2 %``, or ``+1`` for an absolute metric."""
    if row.difference is not None:
        return format_difference(row.difference, row.unit)
    if row.status == "regressed" and row.head is None:  # graph breaks, where there is no graph
        return "not compiled"
    return format_change(row.ratio)


def interval_text(row: Comparison) -> str:
    """Return the change's 95 % interval, ``+4.1 … +6.3 %``, or nothing."""
    if row.difference is not None:
        lo, hi = row.difference_lo, row.difference_hi
        if lo is None or hi is None or lo == hi:
            return ""
        return f"{format_difference(lo, row.unit)} … {format_difference(hi, row.unit)}"
    if row.ratio_lo is None or row.ratio_hi is None or row.ratio_lo == row.ratio_hi:
        return ""
    return format_interval(row.ratio_lo, row.ratio_hi, like=row.ratio)


def limit_text(row: Comparison) -> str:
    """Return the row's threshold: how far the metric may change."""
    absolute = row.difference is not None
    return format_value(row.threshold, row.unit) if absolute else format_share(row.threshold)


def side_text(estimate: Estimate | None, unit: str) -> str:
    """Return one side's centre, or a dash."""
    return format_value(estimate.center if estimate else None, unit)


def side_interval(estimate: Estimate | None, unit: str) -> str:
    """Return one side's own interval, ``1.2 ms … 1.3 ms``, or nothing."""
    if estimate is None or estimate.lo is None or estimate.hi is None:
        return ""
    if estimate.lo == estimate.hi:
        return ""
    return f"{format_value(estimate.lo, unit)} … {format_value(estimate.hi, unit)}"


def metric_words(metric: str) -> str:
    """Return perfci's own metric in a reader's words, and any other by its name.

    >>> metric_words("latency_p50"), metric_words("graph_breaks")
    ('latency', 'graph breaks')
    """
    if metric not in METRICS:
        return metric
    return metric.removesuffix("_p50").replace("_", " ")


def measured_text(row: Comparison) -> str:
    """Return what a row was measured on: pairs, workers of both sides, or ``exact``."""
    base = row.base.workers if row.base else 0
    head = row.head.workers if row.head else 0
    match row.method:
        case "paired_t":
            return counted(head, "pair")
        case "welch_t":
            anchors = f", {counted(row.anchors, 'anchor')}" if row.anchors else ""
            return f"{base} + {counted(head, 'worker')}{anchors}"
        case "exact":
            return "exact"
        case "none":
            return counted(head, "worker") if head else ""


def note(row: Comparison) -> str:
    """Return the remarks on a row in addition to its numbers."""
    parts = [measured_text(row)]
    if row.confirmed is not None:
        measured = "confirmed" if row.status == "regressed" else "measured together"
        parts.append(measured if row.confirmed else "unconfirmed")
    if row.accepted:
        parts.append(accepted_text(row.accepted, row))
    elif row.status == "regressed" and row.gate != "fail":
        parts.append("warns only" if row.gate == "warn" else "for information")
    parts += row.warnings
    return "; ".join(part for part in parts if part)


def status_text(row: Comparison) -> str:
    """Return a row's status in words. A regression that fails nothing is ``accepted``."""
    return "accepted" if row.accepted else row.status.replace("_", " ")


def accepted_text(accepted: Accepted, row: Comparison) -> str:
    """Return who accepted the row, why, up to which change and until when."""
    by = f" by {clean_line(accepted.by, 80)}" if accepted.by else ""
    up_to = ""
    if accepted.up_to is not None:
        absolute = row.difference is not None
        limit = format_value(accepted.up_to, row.unit) if absolute else None
        up_to = f"up to {limit or format_share(accepted.up_to)}"
    until = f"until {accepted.until}" if accepted.until else ""
    bounds = ", ".join(bound for bound in (up_to, until) if bound)
    return f"accepted{by}: {clean_line(accepted.because, 300)}" + (f" ({bounds})" * bool(bounds))


def has_numbers(row: Comparison) -> bool:
    """Return whether a side of the row has numbers. If not, the row stands for its whole case."""
    return row.base is not None or row.head is not None


def size(row: Comparison) -> float:
    """Return the size of the change, in units of its threshold, whatever its direction."""
    if row.difference is not None:
        return abs(row.difference) / row.threshold if row.threshold > 0 else math.inf
    if row.ratio is None or row.ratio <= 0:
        return math.inf
    change = abs(math.log(row.ratio))
    return change / math.log1p(row.threshold) if row.threshold > 0 else math.inf


def replay_command(report: Report, digits: int = 64) -> str:
    """Return the replay command without its case (it ends in ``-k``), or "".

    There is no such command if a side is a working tree, or if head was measured alone.
    """
    sides = (report.base, report.head)
    if any(side is None or side.dirty or not _SHA.fullmatch(side.sha) for side in sides):
        return ""
    if report.benchmarks_of and not _SHA.fullmatch(report.benchmarks_of):
        return ""
    of = report.benchmarks_of[:digits]
    files = f" --benchmarks-of {of}" if of else ""
    return f"perfci compare {' '.join(side.sha[:digits] for side in sides if side)}{files} -k "


def replay_line(report: Report, cases: Iterable[str], rounds: int = 0) -> str:
    """Return the command that compares the first of ``cases`` again, or nothing."""
    known = [case for case in cases if selection_of(case)][:_MOST_CASES]
    again = replay_command(report, _SHA_DIGITS)
    if not known or not again:
        return ""
    return again + shlex.quote(" or ".join(known)) + (f" --rounds {rounds}" if rounds else "")


def selection_of(case: str) -> str:
    """Return the argument of ``-k`` that selects ``case``, quoted for a shell, or "".

    Empty for a name with blanks or invisible characters. No benchmark has one, so the name comes
    from an edited report, and isn't offered for pasting.
    """
    plain = (
        clean_line(case, 1000) == case
        and _SELECTABLE.fullmatch(case)
        and case.lower() not in _OPERATORS
    )
    return shlex.quote(case) if plain else ""


def replay_of(report: Report, case: str) -> str:
    """Return the whole command that measures ``case`` again, or ""."""
    again, selected = replay_command(report), selection_of(case)
    return again + selected if again and selected else ""


def test_name(row: Comparison) -> str:
    """Return the test's name."""
    return _TEST_NAMES[row.method]


def number_text(row: Comparison) -> str:
    """Return n of the test: pairs, or the workers of both sides. Empty for an exact row."""
    return "" if row.method == "exact" else measured_text(row)


def freedom_text(row: Comparison) -> str:
    """Return the degrees of freedom: a whole number for pairs, a fraction for Welch's test."""
    return "" if row.df is None else f"{row.df:.3g}"


def p_text(p: float | None) -> str:
    """Return a p-value with two digits."""
    if p is None:
        return ""
    return "< 0.0001" if p < 0.0001 else f"{p:.2g}"


def effect_text(row: Comparison) -> str:
    """Return Cohen's d with Cohen's word for its size: ``2.50 (large)``."""
    d = row.cohens_d
    return "" if d is None else f"{d:.2f} ({magnitude(d)})"


def stored_text(row: Comparison) -> str:
    """Return Welch's p of a checked row against the stored sessions, or nothing."""
    if row.welch_p is None or not (row.anchors or row.confirmed):
        return ""
    return f"Welch's p {p_text(row.welch_p)} against the stored sessions"


def statistics_text(row: Comparison) -> str:
    """Return the test's results on one line, or nothing. The row's note has n."""
    if row.p is None:
        return ""
    adjusted = "" if row.p_adjusted is None else f", adjusted {p_text(row.p_adjusted)}"
    parts = (
        test_name(row),
        f"p {p_text(row.p)}{adjusted}",
        f"df {freedom_text(row)}" if row.df is not None else "",
        f"d {effect_text(row)}" if row.cohens_d is not None else "",
        stored_text(row),
    )
    return "; ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class CaseWhy:
    """A reason why a case moved, or one ``metric`` of it. ``more`` has all other lines on it."""

    case: str
    metric: str
    text: str
    file: str
    line: int
    more: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The reason's place as ``file:line``, or nothing."""
        return _at(self.file, self.line).removeprefix(", ")


def whys(report: Report) -> tuple[CaseWhy, ...]:
    """Return why cases moved: by what instruments found, else by their workers' explanations."""
    reasons = [reason for why in report.why if why.differences for reason in _of_case(why, report)]
    explained = {reason.case for reason in reasons}
    causes = [each for each in dict.fromkeys(report.explanations) if each.case not in explained]
    reasons += [CaseWhy(each.case, each.metric, each.text, each.file, each.line) for each in causes]
    return tuple(reasons)


def _of_case(why: Why, report: Report) -> Iterator[CaseWhy]:
    """Yield the case's likeliest reason, then one for each moved row that it doesn't explain.

    Exact metrics that got worse go first: no noise makes them. ``more`` also has the workers'
    explanations of the case, unless a difference names the same line of code.
    """
    leads = leading(why.differences, (row for row in report.results if _moved(row, why.case)))
    counts = _counts_that_rose(report, why.case)
    first = counts if leads or counts else UNEXPLAINED
    shown = leads or why.differences[:1]
    more = tuple(_more_lines(why, shown, report))
    for lead in shown:
        text = "; ".join(filter(None, (first, words(lead))))
        yield CaseWhy(why.case, "", text, lead.file, lead.line, more)
        first, more = "", ()


def _counts_that_rose(report: Report, case: str) -> str:
    return ", ".join(
        f"{metric_words(row.metric)} {side_text(row.base, row.unit)} → "
        f"{side_text(row.head, row.unit)}"
        for row in report.results
        if (row.case, row.method, row.status) == (case, "exact", "regressed") and row.gate == "info"
    )


def _more_lines(why: Why, leads: Sequence[Difference], report: Report) -> Iterator[str]:
    places = {(finding.file, finding.line) for finding in why.differences if finding.file}
    for difference in why.differences:
        if difference not in leads:
            yield _with_place(difference)
    for cause in dict.fromkeys(report.explanations):
        if cause.case == why.case and (cause.file, cause.line) not in places:
            yield f"{cause.metric}: {cause.text}{_at(cause.file, cause.line)}"
    yield from unavailable_lines(why)


def _moved(row: Comparison, case: str) -> bool:
    return row.case == case and row.status in {"regressed", "improved"} and row.gate != "info"


def _at(file: str, line: int) -> str:
    return f", {file}:{line}" if file and line else ""


def _with_place(finding: Difference) -> str:
    return f"{words(finding)}{_at(finding.file, finding.line)}"


def unavailable_lines(why: Why) -> Iterator[str]:
    """Yield the instruments that were unavailable, grouped by the reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in why.untold.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield f"unavailable from {', '.join(names)}: {reason}"


def lines_of_why(why: Why) -> Iterator[str]:
    """Yield a case's why in lines: its differences and unavailable instruments."""
    if not why.differences and not why.untold:
        yield "nothing differs inside"
    for difference in why.differences:
        changed = " (a changed line)" if difference.hunk else ""
        yield f"{_with_place(difference)}{changed}"
    yield from unavailable_lines(why)
