"""Annotations: a report's remarks at lines of code, which a check shows as plain text.

Paths, titles and messages are untrusted: invisible characters are removed, and a remark whose path
leaves the repository becomes no annotation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from perfci.model.report import Comparison, Report
from perfci.report.clean import clean_line, sentences
from perfci.report.outline import gates, shown_failures
from perfci.report.rows import change_text
from perfci.units import first_of

Level = Literal["failure", "warning", "notice"]
_Place = tuple[str, int, str, str]
"""A path, a line in it, the remark's title and its text."""
_LEVELS: tuple[Level, ...] = ("failure", "warning", "notice")
"""The gravest first."""
MOST = 200
"""Most annotations. GitHub takes them in four requests. The comment has the rest."""
_MOST_CASES = 5
"""Cases that a message names. The rest are counted."""
_LONGEST_PATH = 300
_LAST_LINE = 10_000_000
"""Largest line number that is believed."""
_NAMED = re.compile(r"(?P<file>[^:\n]+):(?P<line>[1-9]\d{0,7}): (?P<text>.*)", re.DOTALL)
"""A failure's message that begins with the line of the user's code that is to blame."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A message at ``line`` of ``path``, which is relative to the repository."""

    path: str
    line: int
    level: Level
    title: str
    message: str


def annotations_of(reports: Sequence[Report]) -> tuple[Annotation, ...]:
    """Return at most ``MOST`` annotations, the gravest first. Equal remarks at a line are one."""
    cases: dict[_Place, list[str]] = {}
    levels: dict[_Place, Level] = {}
    for report in reports:
        for place, case, level in _remarks(report):
            if place is not None:
                cases.setdefault(place, []).append(case)
                levels[place] = min(levels.get(place, level), level, key=_LEVELS.index)
    every = []
    for (path, line, title, text), of_place in cases.items():
        level = levels[path, line, title, text]
        names = first_of([clean_line(case, 200) for case in dict.fromkeys(of_place)], _MOST_CASES)
        message = f"{text or title}\nin {names}"
        every.append(Annotation(path, line, level, title, message))
    return tuple(sorted(every, key=lambda annotation: _LEVELS.index(annotation.level))[:MOST])


def _remarks(report: Report) -> Iterator[tuple[_Place | None, str, Level]]:
    """Yield for each remark its place, the words that name its case, and its level."""
    rows = {(row.case, row.metric): row for row in report.results}
    for cause in report.explanations:
        place = _place(cause.file, cause.line, cause.kind.replace("_", " "), cause.text)
        yield place, cause.case, _level(rows.get((cause.case, cause.metric)))
    yield from _at_definitions(report)
    for failure in shown_failures(report):
        named = _NAMED.match(failure.message)
        # the forge shows head's code, so a line of base's is no place for a remark
        if named is not None and "head" in failure.side.split():
            title = f"failed in {failure.stage} ({failure.kind})"
            place = _place(named["file"], int(named["line"]), title, named["text"])
            yield place, failure.case, "failure"


def _at_definitions(report: Report) -> Iterator[tuple[_Place | None, str, Level]]:
    """Yield a remark at a benchmark's own line for each regression that no other line explains."""
    definitions = {definition.benchmark: definition for definition in report.definitions}
    named = {(cause.case, cause.metric) for cause in report.explanations if cause.file}
    for row in report.results:
        definition = definitions.get(row.case.partition("[")[0])
        if row.status != "regressed" or definition is None or (row.case, row.metric) in named:
            continue
        place = _place(definition.file, definition.line, f"{row.metric} regressed", "")
        yield place, f"{row.case}: {change_text(row)}", _level(row)


def _place(file: str, line: int, title: str, text: str) -> _Place | None:
    """Return a remark's place and words, or None if it names no line of the repository."""
    inside = not file.startswith(("/", "~")) and "\\" not in file
    known = inside and not {"", ".", ".."} & set(file.split("/"))
    if not known or clean_line(file, _LONGEST_PATH) != file or not 1 <= line <= _LAST_LINE:
        return None
    return file, line, f"perfci: {clean_line(title, 200)}", clean_line(sentences(text), 1000)


def _level(row: Comparison | None) -> Level:
    if row is None or row.status != "regressed":
        return "notice"
    return "failure" if gates(row) else "warning"
