"""The page: verdict, what moved with its reasons, every row, how it was measured.

What is not Markup is escaped by the template engine. The policy in its head lets nothing run or
style it but what stands in it, by hash, and lets it ask no host.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfci.model.case import Failure
from perfci.model.report import Comparison, Explanation, Report
from perfci.model.run import Environment
from perfci.model.status import traits
from perfci.report import modes, shapes
from perfci.report.clean import Clean, Safe, clean_block, clean_line, clean_lines, sentences
from perfci.report.drawing import BLAME, flame_of, payload
from perfci.report.links import environment_names
from perfci.report.outline import (
    headline,
    injected_text,
    other_reasons,
    outline,
    part_text,
    ran_lines,
    same_code_text,
    shown_failures,
)
from perfci.report.rows import (
    change_text,
    has_numbers,
    interval_text,
    note,
    other_explanations,
    side_text,
    status_text,
    whys,
)
from perfci.report.sections import sides_of, status_of
from perfci.report.site.data import literal
from perfci.report.site.events import Spark, spark
from perfci.report.templates import read_template, render_html
from perfci.units import counted, format_duration
from perfci.verdict.caveats import cause_of

MOST_ROWS, MOST_FAILURES, MOST_LINES = 40, 40, 200
"""Rows, failures and lines of a list that stand in the page itself; the search finds all rows."""
STYLES = ("trend/trend.css", "report/page.css")
THEME = ("trend/theme.js",)
"""Before the first paint."""
SCRIPTS = (
    "trend/register.js", "trend/elements.js", "trend/numbers.js", "trend/address.js",
    "trend/filters.js", "trend/plot.js", "trend/lanes.js", "report/strip.js", "report/warm.js",
    "report/detail.js", "report/page.js",
)  # fmt: skip
_PAST = (120.0, 24.0)
_FEWEST_PAST = 3


@dataclass(frozen=True, slots=True)
class Line:
    """One row that stands open. Its texts are visible characters, but not escaped."""

    place: int
    case: str
    metric: str
    status: str
    sense: str
    rises: bool | None
    size: str
    interval: str
    before: str
    after: str
    note: str
    cause: str
    why: tuple[Reason, ...]
    past: Spark | None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a row moved, and where in the code that is."""

    metric: str
    text: str
    place: str


def render_page(report: Report) -> Clean:
    """Return the page."""
    style, theme, script = (_joined(names) for names in (STYLES, THEME, SCRIPTS))
    context = {
        **_first(report),
        **_lists(report),
        **_tables(report),
        **_measured(report),
        "policy": _policy(style, (theme, script)),
        "style": Safe(style),
        "theme": Safe(theme),
        "script": Safe(script),
        "drawn": Safe(literal(payload(report)).decode()),
        "count": counted(len(report.results), "comparison"),
        "blame": BLAME,
    }
    return clean_lines(render_html("report/page.html.j2", context).decode())


def _joined(names: Iterable[str]) -> str:
    return "\n".join(read_template(name) for name in names)


def _policy(style: str, scripts: Iterable[str]) -> Safe:
    """Return which style and scripts a browser may take from the page: these, by their hashes."""
    allowed = " ".join(map(_hash, scripts))
    return Safe(f"script-src {allowed}; style-src {_hash(style)}; img-src data:")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# The top: what a reader needs who reads nothing else.

_WORSE = frozenset({"fail", "error"})


def _first(report: Report) -> dict[str, Any]:
    warnings = (injected_text(report), part_text(report), same_code_text(report))
    found = outline(report)
    reasons = [clean_line(one, 1000) for one in other_reasons(report)]
    better = any(row.status == "improved" for row in found.moved)
    status = report.verdict.status
    return {
        "root": "",
        "version": clean_line(report.perfci_version, 60),
        "created": clean_line(report.created_at[:16].replace("T", " "), 30),
        "status": status_of(report),
        "headline": clean_line(headline(report), 600),
        "mood": "worse" if status in _WORSE else "better" if better else "steady",
        "sides": tuple(clean_line(one) for one in sides_of(report)),
        "warnings": tuple(clean_line(one, 1000) for one in warnings if one),
        "reasons": reasons[:MOST_LINES],
        "more_reasons": max(0, len(reasons) - MOST_LINES),
    }


# What moved, what is undecided, what failed, each with its reasons.


def _lists(report: Report) -> dict[str, Any]:
    found = outline(report)
    failures = shown_failures(report)
    failed = {one.case for one in failures}
    moved = [row for row in found.moved if not (row.status == "failed" and row.case in failed)]
    lines = _Lines(report)
    shown = tuple(map(lines.of, moved[:MOST_ROWS]))
    undecided = tuple(map(lines.of, found.undecided[:MOST_ROWS]))
    flames = tuple(filter(None, map(flame_of, report.why)))
    return {
        "moved": shown,
        "more_moved": max(0, len(moved) - MOST_ROWS),
        "undecided": undecided,
        "more_undecided": max(0, len(found.undecided) - MOST_ROWS),
        "failures": tuple(map(_failure, failures[:MOST_FAILURES])),
        "more_failures": max(0, len(failures) - MOST_FAILURES),
        "elsewhere": lines.unshown()[:MOST_LINES],
        "flames": flames[:MOST_ROWS],
        "more_flames": max(0, len(flames) - MOST_ROWS),
        "skipped": _pairs(report.skipped),
        "more_skipped": max(0, len(report.skipped) - MOST_LINES),
        "not_measured": _pairs(report.not_measured),
    }


class _Lines:
    """Rows as lines; a case's reasons stand at its first row alone."""

    def __init__(self, report: Report) -> None:
        self._places = {id(row): place for place, row in enumerate(report.results)}
        self._same_code = frozenset(report.same_code)
        self._past = {(one.case, one.metric): one.values for one in report.past}
        self._reasons: dict[str, list[Reason]] = {}
        for why in whys(report):
            first = Reason("", clean_line(why.text, 1000), clean_line(why.place, 1000))
            more = (Reason("", clean_line(line, 1000), "") for line in why.more)
            self._reasons.setdefault(why.case, []).extend((first, *more))
        for one in other_explanations(report):
            self._reasons.setdefault(one.case, []).append(_reason(one))

    def of(self, row: Comparison) -> Line:
        """Return the line of a row."""
        return Line(
            place=self._places[id(row)],
            case=clean_line(row.case) or "unnamed",
            metric=clean_line(row.metric, 100) if has_numbers(row) else "",
            status=status_text(row),
            sense=traits(row.status).sense,
            rises=_rises(row),
            size=clean_line(change_text(row)),
            interval=clean_line(interval_text(row)),
            before=clean_line(side_text(row.base, row.unit)),
            after=clean_line(side_text(row.head, row.unit)),
            note=clean_line(note(row), 600),
            cause=cause_of(row, self._same_code),
            why=tuple(self._reasons.pop(row.case, ())[:MOST_LINES]),
            past=self._spark(row),
        )

    def _spark(self, row: Comparison) -> Spark | None:
        import numpy as np

        values = self._past.get((row.case, row.metric), ())
        if len(values) < _FEWEST_PAST or row.head is None or row.head.center is None:
            return None
        every = np.asarray([*values, row.head.center], dtype=float)
        return spark(every, (len(values),), *_PAST)

    def unshown(self) -> list[tuple[str, Reason]]:
        """Return the reasons whose rows do not stand open, with their cases."""
        return [(clean_line(case), one) for case, of in self._reasons.items() for one in of]


def _rises(row: Comparison) -> bool | None:
    if row.difference is not None:
        return row.difference > 0
    return None if row.ratio is None else row.ratio > 1.0


def _reason(one: Explanation) -> Reason:
    place = f"{one.file}:{one.line}" if one.file else ""
    return Reason(clean_line(one.metric, 100), clean_line(one.text, 1000), clean_line(place, 1000))


def _failure(one: Failure) -> Mapping[str, str]:
    return {
        "case": clean_line(one.case),
        "where": clean_line(f"{one.side} in {one.stage}"),
        "kind": clean_line(one.kind),
        "message": clean_line(sentences(one.message), 1000),
        "log": clean_block(one.log_tail),
    }


def _pairs(texts: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    every = list(texts.items())[:MOST_LINES]
    return [(clean_line(name), clean_line(text, 1000)) for name, text in every]


# The modes and shapes of each benchmark; those that changed stand open.


def _tables(report: Report) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for name, words, found in _found_tables(report):
        first = sorted(found, key=lambda one: not one.changed)[:MOST_ROWS]
        tables[name] = [_table(one, words, open_=report.is_one_sided) for one in first]
        tables[f"more_{name}"] = max(0, len(found) - MOST_ROWS)
    return tables


def _table(of: Any, words: Any, *, open_: bool) -> dict[str, Any]:
    lines = [tuple(map(clean_line, cells)) for cells in words.table(of)]
    return {
        "case": clean_line(of.case),
        "open": of.changed or open_,
        "advice": clean_line(words.advice_text(of), 600),
        "table": lines,
        "numbers": [at for at, head in enumerate(lines[0]) if at and head not in words.TEXTS],
    }


def _found_tables(report: Report) -> tuple[tuple[str, Any, Sequence[Any]], ...]:
    """Return what tables of cases there are, each with the module of its words."""
    return (
        ("modes", modes, modes.shown(report, every=True)),
        ("shapes", shapes, shapes.shown(report, every=True)),
    )


# How it was measured.


def _measured(report: Report) -> dict[str, Any]:
    timing = report.timing
    environments = [("Environment", report.environment)]
    if report.base_environment is not None:
        environments.append(("Base's environment", report.base_environment))
    notes = (*report.notes, *ran_lines(report))
    cases = counted(outline(report).cases, "case")
    return {
        "scope": clean_line(
            f"{counted(len(report.results), 'comparison')} of {cases}; "
            f"{counted(timing.rounds, 'round')} in {format_duration(timing.wall_s)}; "
            f"{environment_names((report,))[0]}",
            600,
        ),
        "notes": [clean_line(one, 2000) for one in notes][:MOST_LINES],
        "environments": [(name, _environment(one)) for name, one in environments],
        "command": clean_line(report.command, 60),
    }


def _environment(one: Environment) -> Sequence[tuple[str, str]]:
    return [("key", clean_line(one.key)), *_pairs(dict(sorted(one.facts.items())))]
