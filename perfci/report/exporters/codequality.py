"""GitLab's code quality report, and annotations: a report's remarks at lines of code.

The format is GitLab's subset of CodeClimate's. GitLab shows a finding as new if the target branch's
report lacks its fingerprint. So a fingerprint contains no measured figure and no line number.

On GitHub the same annotations belong to a check, which shows them as plain text. Paths, titles and
messages are untrusted: invisible characters are removed, and a remark whose path leaves the
repository becomes no annotation.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from perfci.model.report import Comparison, Report
from perfci.report.clean import Clean, clean_json, clean_line, sentences
from perfci.report.outline import gates, shown_failures
from perfci.report.rows import change_text
from perfci.units import first_of

HELP = "Write GitLab's code quality report here: regressions at the lines that are to blame."
Level = Literal["failure", "warning", "notice"]
_Place = tuple[str, int, str, str]
"""A path, a line in it, the remark's title and its text."""
_SEVERITIES: dict[Level, str] = {"failure": "major", "warning": "minor", "notice": "info"}
"""GitLab's severity by level, the gravest first."""
_LEVELS = tuple(_SEVERITIES)
_DIGITS = re.compile(r"\d+")
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
    """A message at ``line`` of ``path``, which is relative to the repository.

    ``cases`` are the cases that the message is about. ``text`` is the message without the cases and
    their figures.
    """

    path: str
    line: int
    level: Level
    title: str
    message: str
    cases: tuple[str, ...] = ()
    text: str = ""


def render(report: Report) -> Clean:
    """Return the report's findings as a JSON list, the gravest first."""
    seen: Counter[str] = Counter()
    findings: list[dict[str, Any]] = []
    for annotation in annotations_of((report,)):
        key = _key(annotation)
        seen[key] += 1  # one text at two lines of a file makes two findings, numbered by this
        findings.append(
            {
                "description": clean_line(annotation.message, 1000),
                "check_name": annotation.title,
                "fingerprint": hashlib.sha256(f"{key} {seen[key]}".encode()).hexdigest(),
                "severity": _SEVERITIES[annotation.level],
                "location": {"path": annotation.path, "lines": {"begin": annotation.line}},
            }
        )
    return clean_json(json.dumps(findings, indent=1) + "\n")


def _key(annotation: Annotation) -> str:
    """Return what a fingerprint is made of: nothing that differs between two measurements."""
    text = _DIGITS.sub("#", annotation.text)
    return json.dumps([annotation.path, annotation.title, text, sorted(annotation.cases)])


def annotations_of(reports: Sequence[Report]) -> tuple[Annotation, ...]:
    """Return at most ``MOST`` annotations, the gravest first. Equal remarks at a line are one."""
    cases: dict[_Place, dict[str, str]] = {}
    levels: dict[_Place, Level] = {}
    for report in reports:
        for place, case, shown, level in _remarks(report):
            if place is not None:
                cases.setdefault(place, {})[shown] = case
                levels[place] = min(levels.get(place, level), level, key=_LEVELS.index)
    every = []
    for (path, line, title, text), of_place in cases.items():
        level = levels[path, line, title, text]
        names = first_of([clean_line(case, 200) for case in of_place], _MOST_CASES)
        message = f"{text or title}\nin {names}"
        alike = tuple(dict.fromkeys(of_place.values()))
        every.append(Annotation(path, line, level, title, message, alike, text))
    return tuple(sorted(every, key=lambda annotation: _LEVELS.index(annotation.level))[:MOST])


def _remarks(report: Report) -> Iterator[tuple[_Place | None, str, str, Level]]:
    """Yield for each remark its place, its case, the words that name the case, and its level."""
    rows = {(row.case, row.metric): row for row in report.results}
    for cause in report.explanations:
        place = _place(cause.file, cause.line, cause.kind.replace("_", " "), cause.text)
        yield place, cause.case, cause.case, _level(rows.get((cause.case, cause.metric)))
    yield from _at_definitions(report)
    for failure in shown_failures(report):
        named = _NAMED.match(failure.message)
        # the forge shows head's code, so a line of base's is no place for a remark
        if named is not None and "head" in failure.side.split():
            title = f"failed in {failure.stage} ({failure.kind})"
            place = _place(named["file"], int(named["line"]), title, named["text"])
            yield place, failure.case, failure.case, "failure"


def _at_definitions(report: Report) -> Iterator[tuple[_Place | None, str, str, Level]]:
    """Yield a remark at a benchmark's own line for each regression that no other line explains."""
    definitions = {definition.benchmark: definition for definition in report.definitions}
    named = {(cause.case, cause.metric) for cause in report.explanations if cause.file}
    for row in report.results:
        definition = definitions.get(row.case.partition("[")[0])
        if row.status != "regressed" or definition is None or (row.case, row.metric) in named:
            continue
        place = _place(definition.file, definition.line, f"{row.metric} regressed", "")
        yield place, row.case, f"{row.case}: {change_text(row)}", _level(row)


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
