"""The lines of code that a report can name, as a check's annotations, or a forge's findings.

They are shown as plain text. Paths, titles and messages are untrusted text: what can't
be seen is removed, and a path that leaves the repository names no line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from perfci.model.report import Comparison, Report
from perfci.report.clean import clean_line, sentences
from perfci.report.outline import shown_failures
from perfci.report.rows import change_text

Level = Literal["failure", "warning", "notice"]
_LEVELS: tuple[Level, ...] = ("failure", "warning", "notice")

MOST = 200
"""Four requests' worth; nobody reads on, and the comment has the rest."""
_MOST_CASES = 5
_LONGEST_PATH = 300
_LAST_LINE = 10_000_000
_PLACE = re.compile(r"(?P<file>[^:\n]+):(?P<line>[1-9]\d{0,7}): (?P<text>.*)", re.DOTALL)
"""How a failure's message begins where a line of the user's code is to blame."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What is said at ``line`` of ``path``, which is relative to the repository.

    ``cases`` are those that it is said of, and ``text`` what is said of the line, without figures
    of this measurement.
    """

    path: str
    line: int
    level: Level
    title: str
    message: str
    cases: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    path: str
    line: int
    title: str
    text: str


def annotations_of(reports: Sequence[Report]) -> tuple[Annotation, ...]:
    """Return at most ``MOST`` annotations, the gravest first, each place and text once."""
    cases: dict[_Place, dict[str, str]] = {}
    levels: dict[_Place, Level] = {}
    for place, case, shown, level in _found(reports):
        cases.setdefault(place, {})[shown] = case
        levels[place] = min(levels.get(place, level), level, key=_LEVELS.index)
    every = [
        Annotation(
            place.path,
            place.line,
            levels[place],
            place.title,
            _message(place, of),
            tuple(dict.fromkeys(of.values())),
            place.text,
        )
        for place, of in cases.items()
    ]
    return tuple(sorted(every, key=lambda one: _LEVELS.index(one.level))[:MOST])


def _found(reports: Sequence[Report]) -> Iterator[tuple[_Place, str, str, Level]]:
    """Yield each place, the case, the case as it is shown there, and how grave it is."""
    for report in reports:
        rows = {(row.case, row.metric): row for row in report.results}
        for one in report.explanations:
            level = _level(rows.get((one.case, one.metric)))
            place = _place(one.file, one.line, one.kind.replace("_", " "), one.text)
            if place is not None:
                yield place, one.case, one.case, level
        yield from _at_definitions(report)
        for failure in shown_failures(report):
            said = _PLACE.match(failure.message)
            if said is None or "head" not in failure.side.split():
                continue  # base's lines are not in the pull request
            title = f"failed in {failure.stage} ({failure.kind})"
            place = _place(said["file"], int(said["line"]), title, said["text"])
            if place is not None:
                yield place, failure.case, failure.case, "failure"


def _at_definitions(report: Report) -> Iterator[tuple[_Place, str, str, Level]]:
    """Say on a benchmark's own line what regressed in it and names no other line."""
    definitions = {one.benchmark: one for one in report.definitions}
    named = {(one.case, one.metric) for one in report.explanations if one.file}
    for row in report.results:
        definition = definitions.get(row.case.partition("[")[0])
        if row.status != "regressed" or definition is None or (row.case, row.metric) in named:
            continue
        place = _place(definition.file, definition.line, f"{row.metric} regressed", "")
        if place is not None:
            yield place, row.case, f"{row.case}: {change_text(row)}", _level(row)


def _place(file: str, line: int, title: str, text: str) -> _Place | None:
    """Return the place, or None where no line of the repository is named."""
    inside = not file.startswith(("/", "~")) and "\\" not in file
    known = inside and not {"", ".", ".."} & set(file.split("/"))
    if not known or clean_line(file, _LONGEST_PATH) != file or not 1 <= line <= _LAST_LINE:
        return None
    return _Place(
        file, line, f"perfci: {clean_line(title, 200)}", clean_line(sentences(text), 1000)
    )


def _level(row: Comparison | None) -> Level:
    if row is None or row.status != "regressed":
        return "notice"
    return "failure" if row.gate == "fail" and not row.accepted else "warning"


def _message(place: _Place, cases: dict[str, str]) -> str:
    shown = [clean_line(case, 200) for case in list(cases)[:_MOST_CASES]]
    more = f" and {len(cases) - _MOST_CASES} more" if len(cases) > _MOST_CASES else ""
    return f"{place.text or place.title}\nin {', '.join(shown)}{more}"
