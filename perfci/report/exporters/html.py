"""One page to open in a browser: verdict, what moved and why, every row, how it was measured.

The page needs no other file. The template engine escapes all text that isn't Markup. The content
security policy in the page's head allows only the page's own scripts and styles, by their hashes,
and no request to any host.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from perfci.model.case import Failure
from perfci.model.report import Comparison, Estimate, Report
from perfci.model.run import Environment
from perfci.model.status import traits
from perfci.report.case_tables import CaseTable, case_tables
from perfci.report.clean import Clean, Safe, clean_block, clean_line, clean_lines, sentences
from perfci.report.drawing import literal
from perfci.report.links import environment_names
from perfci.report.outline import (
    GROUPS,
    MOVED,
    Outline,
    headline,
    injected_text,
    other_reasons,
    outline,
    part_text,
    shown_failures,
    undecided_warnings,
)
from perfci.report.rows import (
    BLAME,
    change_text,
    effect_text,
    freedom_text,
    has_numbers,
    interval_text,
    limit_text,
    measured_text,
    note,
    p_text,
    replay_command,
    selection_of,
    side_text,
    status_text,
    whys,
)
from perfci.report.sections import sides_of, status_of
from perfci.report.templates import read_template, render_html
from perfci.units import counted, format_duration, format_share
from perfci.verdict.caveats import cause_of
from perfci.verdict.policy import margin

HELP = "Write the report as one HTML page here."
MOST_ROWS, MOST_FAILURES, MOST_LINES = 40, 40, 200
"""Rows, failures and lines of a list that the page shows at once. Its search finds all rows."""
STYLES = ("trend/trend.css", "report/page.css")
THEME = ("trend/theme.js",)
"""The script that runs before the first paint."""
SCRIPTS = (
    "trend/register.js", "trend/elements.js", "trend/numbers.js", "trend/address.js",
    "trend/filters.js", "trend/plot.js", "report/lanes.js", "report/strip.js", "report/warm.js",
    "report/detail.js", "report/page.js",
)  # fmt: skip
_WORSE = frozenset({"fail", "error"})
_LONGEST_NOTE = 600
_TESTS = {
    "paired_t": "paired t, of each round's two processes",
    "welch_t": "Welch's t, of unpaired processes",
    "exact": "none: all processes of a side agree",
}
_GATES = {"fail": "fails the report", "warn": "warns", "info": "informs"}


def render(report: Report) -> Clean:
    """Return the page."""
    style, theme, script = (_joined(names) for names in (STYLES, THEME, SCRIPTS))
    rows = outline(report)
    context = {
        **_first(rows),
        **_lists(rows),
        **_tables(report),
        **_measured(rows),
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
    """Return the content security policy: only this style and these scripts, by their hashes."""
    allowed = " ".join(map(_hash, scripts))
    return Safe(f"script-src {allowed}; style-src {_hash(style)}; img-src data:")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _first(rows: Outline) -> dict[str, Any]:
    """Return the top of the page, for a reader who reads nothing else."""
    report = rows.report
    warnings = (injected_text(report), part_text(report))
    texts = (*other_reasons(rows), *undecided_warnings(report))
    reasons = [clean_line(reason, 1000) for reason in texts]
    better = any(row.status == "improved" for row in rows.moved)
    status = report.verdict.status
    return {
        "root": "",
        "version": clean_line(report.perfci_version, 60),
        "created": clean_line(report.created_at[:16].replace("T", " "), 30),
        "status": status_of(report),
        "headline": clean_line(headline(rows), 600),
        "mood": "worse" if status in _WORSE else "better" if better else "steady",
        "sides": tuple(map(clean_line, sides_of(report))),
        "warnings": tuple(clean_line(text, 1000) for text in warnings if text),
        "reasons": reasons[:MOST_LINES],
        "more_reasons": max(0, len(reasons) - MOST_LINES),
    }


def _lists(rows: Outline) -> dict[str, Any]:
    """Return the groups of rows that stand open, and the failures, each with its reasons."""
    report = rows.report
    failures = shown_failures(report)
    failed = {failure.case for failure in failures}
    moved = [row for row in rows.moved if not (row.status == "failed" and row.case in failed)]
    lines = _Lines(report)
    opened = {"moved": (MOVED, moved)} | {
        name: (group.on_page, rows.groups[name])
        for name, group in GROUPS.items()
        if group.on_page not in {"", MOVED}
    }
    groups = [
        {
            "name": name,
            "title": title,
            "rows": tuple(map(lines.of, group[:MOST_ROWS])),
            "more": max(0, len(group) - MOST_ROWS),
        }
        for name, (title, group) in opened.items()
    ]
    return {
        "groups": groups,
        "failures": tuple(map(_failure, failures[:MOST_FAILURES])),
        "more_failures": max(0, len(failures) - MOST_FAILURES),
        "elsewhere": lines.unshown()[:MOST_LINES],
        "skipped": _pairs(report.skipped),
        "more_skipped": max(0, len(report.skipped) - MOST_LINES),
        "not_measured": _pairs(report.not_measured),
    }


class _Lines:
    """Makes a line of each open row. Only a case's first line has the case's reasons."""

    def __init__(self, report: Report) -> None:
        self._places = {id(row): place for place, row in enumerate(report.results)}
        self._reasons: dict[str, list[str]] = {}
        for why in whys(report):
            about = f"{why.metric}: " if why.metric else ""
            place = f" ({why.place})" if why.place else ""
            self._add(why.case, f"{about}{why.text}{place}", *why.more)

    def _add(self, case: str, *lines: str) -> None:
        reasons = self._reasons.setdefault(case, [])
        reasons += (clean_line(line, 1000) for line in lines)

    def of(self, row: Comparison) -> dict[str, Any]:
        """Return an open row's line. Its texts are cleaned, but not escaped."""
        rises = None if row.ratio is None else row.ratio > 1.0
        return {
            **_texts(row),
            "place": self._places[id(row)],
            "metric": clean_line(row.metric, 100) if has_numbers(row) else "",
            "status": status_text(row),
            "rises": rises if row.difference is None else row.difference > 0,
            "cause": cause_of(row),
            "why": tuple(self._reasons.pop(row.case, ())[:MOST_LINES]),
        }

    def unshown(self) -> list[tuple[str, str]]:
        """Return the reasons that no line has shown, with their cases."""
        return [
            (clean_line(case), reason)
            for case, reasons in self._reasons.items()
            for reason in reasons
        ]


def _failure(failure: Failure) -> Mapping[str, str]:
    return {
        "case": clean_line(failure.case),
        "where": clean_line(f"{failure.side} in {failure.stage}"),
        "kind": clean_line(failure.kind),
        "message": clean_line(sentences(failure.message), 1000),
        "log": clean_block(failure.log_tail),
    }


def _pairs(texts: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    every = list(texts.items())[:MOST_LINES]
    return [(clean_line(name), clean_line(text, 1000)) for name, text in every]


def _tables(report: Report) -> dict[str, Any]:
    """Return the tables of modes. Changed tables come first, and stand open."""
    tables = case_tables(report, every=True)
    first = sorted(tables, key=lambda table: not table.changed)[:MOST_ROWS]
    return {
        "modes": [_table(table, open_=report.is_one_sided) for table in first],
        "more_modes": max(0, len(tables) - MOST_ROWS),
    }


def _table(table: CaseTable, *, open_: bool) -> dict[str, Any]:
    return {
        "case": clean_line(table.case),
        "open": table.changed or open_,
        "advice": clean_line(table.advice, 600),
        "table": [tuple(map(clean_line, cells)) for cells in table.lines],
        "numbers": range(1, len(table.lines[0])),
    }


def _measured(rows: Outline) -> dict[str, Any]:
    report, timing = rows.report, rows.report.timing
    named = {"Environment": report.environment, "Base's environment": report.base_environment}
    return {
        "scope": clean_line(
            f"{counted(len(report.results), 'comparison')} of {counted(rows.cases, 'case')}; "
            f"{counted(timing.rounds, 'round')} in {format_duration(timing.wall_s)}; "
            f"{environment_names((report,))[0]}",
            600,
        ),
        "notes": [clean_line(note, 2000) for note in report.notes[:MOST_LINES]],
        "environments": [(name, _environment(each)) for name, each in named.items() if each],
        "command": clean_line(report.command, 60),
    }


def _environment(environment: Environment) -> Sequence[tuple[str, str]]:
    return [("key", clean_line(environment.key)), *_pairs(dict(sorted(environment.facts.items())))]


def payload(report: Report) -> dict[str, Any]:
    """Return the scripts' data: the rows, in the report's order, and the choices of the filters."""
    rows = report.results
    statuses = sorted(
        {row.status for row in rows}, key=lambda status: (traits(status).rank, status)
    )
    metrics = list(dict.fromkeys((row.metric, row.unit) for row in rows))
    causes = list(dict.fromkeys(cause_of(row) for row in rows))
    again = replay_command(report)
    return {
        "metrics": [clean_line(name, 100) for name, _ in metrics],
        "statuses": [status.replace("_", " ") for status in statuses],
        "causes": causes,
        "rows": [
            {
                **_texts(row),
                "note": clean_line(note(row).replace("`", ""), _LONGEST_NOTE),
                "metric": metrics.index((row.metric, row.unit)) if has_numbers(row) else -1,
                "unit": clean_line(row.unit, 30),
                "status": statuses.index(row.status),
                "cause": causes.index(cause_of(row)),
                "facts": [[term, clean_line(text, 300)] for term, text in facts(row)],
                "replay": clean_line(again and again + selection_of(row.case), 2000),
                "change": _change(row),
                "sides": [_side(row.base), _side(row.head)],
                "paired": row.method == "paired_t",
            }
            for row in rows
        ],
    }


def _texts(row: Comparison) -> dict[str, str]:
    """Return a row's texts, cleaned."""
    return {
        "case": clean_line(row.case) or "unnamed",
        "sense": traits(row.status).sense,
        "size": clean_line(change_text(row)),
        "interval": clean_line(interval_text(row)),
        "before": clean_line(side_text(row.base, row.unit)),
        "after": clean_line(side_text(row.head, row.unit)),
        "note": clean_line(note(row), _LONGEST_NOTE),
    }


def _change(row: Comparison) -> dict[str, Any] | None:
    """Return a row's change, interval and margin: as ratios, or as differences in the unit."""
    names = ("estimate", "low", "high", "least", "most")
    if row.difference is not None:
        ends = (row.difference_lo, row.difference_hi, -row.threshold, row.threshold)
        values = (row.difference, *ends)
    elif row.ratio is not None:
        values = (row.ratio, row.ratio_lo, row.ratio_hi, *margin(row.threshold))
    else:
        return None
    numbers = dict(zip(names, map(_short, values), strict=True))
    return {"isRatio": row.difference is None, **numbers}


def _side(side: Estimate | None) -> dict[str, Any] | None:
    """Return a side's centre, and its workers' values, quantiles and first calls."""
    if side is None or side.center is None:
        return None
    drawn = {"values": side.values, "quantiles": side.quantiles, "firsts": side.first_calls}
    lists = {name: [float(f"{value:.4g}") for value in values] for name, values in drawn.items()}
    return {"center": _short(side.center), **lists}


def _short(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.5g}")


def facts(row: Comparison) -> Iterator[tuple[str, str]]:
    """Yield facts about a row's test and policy, as terms with their values."""
    if row.method in _TESTS:
        yield "Test", _TESTS[row.method]
    if measured := measured_text(row):
        yield "Measured", measured
    if row.df is not None:
        yield "Degrees of freedom", freedom_text(row)
    if row.p is not None:
        adjusted = "" if row.p_adjusted is None else f", {p_text(row.p_adjusted)} adjusted"
        yield "p", f"{p_text(row.p)}{adjusted}"
    if row.cohens_d is not None:
        yield "Cohen's d", effect_text(row)
    if row.detectable is not None:
        yield "Could detect", format_share(row.detectable)
    yield "Threshold", limit_text(row)
    yield "Gate", _GATES[row.gate]
    if row.disturbance:
        yield "Disturbed by", row.disturbance
