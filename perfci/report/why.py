"""Why cases moved, in words: what instruments and workers found. The texts are plain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfci.finding import Difference, Why
from perfci.instruments import words
from perfci.model.report import Report
from perfci.report.rows import Row, metric_words
from perfci.verdict.why import leading

UNEXPLAINED = "no difference inside explains it"


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
    def placed(self) -> str:
        """The text, with its place ``file:line`` if that is known."""
        return self.text + _at(self.file, self.line)


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
    rows = [row for row in report.results if row.case == why.case]
    moved = (row for row in rows if row.status in {"regressed", "improved"} and row.gate != "info")
    leads = leading(why.differences, moved)
    counts = ", ".join(
        f"{metric_words(row.metric)} {Row(row).values}"
        for row in rows
        if (row.method, row.status, row.gate) == ("exact", "regressed", "info")
    )
    first = counts if leads or counts else UNEXPLAINED
    shown = leads or why.differences[:1]
    more = tuple(_more_lines(why, shown, report))
    for lead in shown:
        text = "; ".join(filter(None, (first, words(lead))))
        yield CaseWhy(why.case, "", text, lead.file, lead.line, more)
        first, more = "", ()


def _more_lines(why: Why, leads: Sequence[Difference], report: Report) -> Iterator[str]:
    places = {(finding.file, finding.line) for finding in why.differences if finding.file}
    for difference in why.differences:
        if difference not in leads:
            yield _with_place(difference)
    for cause in dict.fromkeys(report.explanations):
        if cause.case == why.case and (cause.file, cause.line) not in places:
            yield f"{cause.metric}: {cause.text}{_at(cause.file, cause.line)}"
    yield from unavailable_lines(why)


def _at(file: str, line: int) -> str:
    return f", {file}:{line}" if file and line else ""


def _with_place(finding: Difference) -> str:
    return f"{words(finding)}{_at(finding.file, finding.line)}"


def by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names that share each reason."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return names


def unavailable_lines(why: Why) -> Iterator[str]:
    """Yield the instruments that were unavailable, grouped by the reason."""
    for reason, names in by_reason(why.untold).items():
        yield f"unavailable from {', '.join(names)}: {reason}"


def lines_of_why(why: Why) -> Iterator[str]:
    """Yield a case's why in lines: its differences and unavailable instruments."""
    if not why.differences and not why.untold:
        yield "nothing differs inside"
    for difference in why.differences:
        changed = " (a changed line)" if difference.hunk else ""
        yield f"{_with_place(difference)}{changed}"
    yield from unavailable_lines(why)
