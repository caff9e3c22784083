"""A why as lines of text, and how it stands with what the workers themselves explain.

Each renderer escapes the lines for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfci.instruments import words
from perfci.model.report import Comparison, Explanation, Report
from perfci.model.why import Difference, Hint, Why
from perfci.verdict.why import leading

UNEXPLAINED = "nothing that differs inside explains it"


@dataclass(frozen=True, slots=True)
class CaseWhy:
    """A reason why a case moved, and in ``more`` all else that is known of it.

    ``explains`` is false where all that differs goes the other way than what moved.
    """

    case: str
    lead: Difference
    more: tuple[str, ...]
    explains: bool = True

    @property
    def text(self) -> str:
        """The reason in words."""
        return words(self.lead) if self.explains else f"{UNEXPLAINED}; {words(self.lead)}"

    @property
    def place(self) -> str:
        """Its place, or nothing."""
        return _at(self.lead.file, self.lead.line).removeprefix(", ")


def whys(report: Report) -> tuple[CaseWhy, ...]:
    """Return why cases moved, of those of which instruments say it: the likeliest reason, and one
    more where that explains no row of another metric that moved.

    What the workers explain of them goes with the rest; what is at the line of a difference is that
    difference.
    """
    found = []
    for why in report.why:
        if not why.differences:
            continue
        leads = leading(why.differences, (row for row in report.results if _moved(row, why.case)))
        lines = {(one.file, one.line) for one in why.differences if one.file}
        explained = (
            one
            for one in dict.fromkeys(report.explanations)
            if one.case == why.case and (one.file, one.line) not in lines
        )
        more = (
            *(_with_place(one) for one in why.differences if one not in leads),
            *(f"{one.metric}: {one.text}{_at(one.file, one.line)}" for one in explained),
            *(f"hint: {_with_place(one)}" for one in why.hints),
            *untold_lines(why),
        )
        for number, lead in enumerate(leads):
            found.append(CaseWhy(why.case, lead, () if number else more))
        if not leads:
            found.append(CaseWhy(why.case, why.differences[0], more[1:], explains=False))
    return tuple(found)


def _moved(row: Comparison, case: str) -> bool:
    return row.case == case and row.status in {"regressed", "improved"} and row.gate != "info"


def other_explanations(report: Report) -> tuple[Explanation, ...]:
    """Return what the workers explain of cases that have no why, each once."""
    said = {why.case for why in report.why if why.differences}
    return tuple(one for one in dict.fromkeys(report.explanations) if one.case not in said)


def _at(file: str, line: int) -> str:
    return f", {file}:{line}" if file and line else ""


def _with_place(one: Difference | Hint) -> str:
    return f"{words(one)}{_at(one.file, one.line)}"


def first_line(why: Why, row: Comparison) -> str:
    """Return the likeliest reason why a row moved, with its place."""
    leads = leading(why.differences, (row,))
    return _with_place(leads[0]) if leads else UNEXPLAINED


def untold_lines(why: Why) -> Iterator[str]:
    """Yield what could not be said, and why not; several of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in why.untold.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield f"not told by {', '.join(names)}: {reason}"


def why_lines(why: Why) -> Iterator[str]:
    """Yield a why in lines: the differences, then hints, then what could not be said."""
    if not why.differences and not why.untold:
        yield "nothing differs inside"
    for one in why.differences:
        yield f"{_with_place(one)}{' (a changed line)' if one.hunk else ''}"
    for hint in why.hints:
        yield f"hint: {_with_place(hint)}"
    yield from untold_lines(why)
