"""One page to open in a browser: verdict, what moved and why, every row, how it was measured.

The page needs no other file. The template engine escapes all text that isn't Markup. The content
security policy in the page's head allows only the page's own scripts and styles, by their hashes,
and no request to any host.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable
from typing import Any

from perfci.model.report import Estimate, Report
from perfci.model.status import traits
from perfci.report.clean import Clean, Safe, clean_line, clean_lines
from perfci.report.drawing import literal
from perfci.report.groups import GROUPS, MOVED
from perfci.report.links import environment_names
from perfci.report.replay import replay_command, selection_of
from perfci.report.rows import BLAME, Row
from perfci.report.templates import read_template, render_html
from perfci.report.view import ReportView, side_words
from perfci.units import counted
from perfci.verdict.policy import margin

HELP = "Write the report as one HTML page here."
MOST_ROWS, MOST_LINES = 40, 200
"""Rows and lines of a list that the page shows at once. Its search finds all rows."""
STYLES = ("trend/trend.css", "report/page.css")
THEME = ("trend/theme.js",)
"""The script that runs before the first paint."""
SCRIPTS = (
    "trend/register.js", "trend/elements.js", "trend/numbers.js", "trend/filters.js",
    "trend/plot.js", "report/lanes.js", "report/strip.js", "report/warm.js", "report/detail.js",
    "report/page.js",
)  # fmt: skip
_WORSE = frozenset({"fail", "error"})
_LONGEST_NOTE = 600


def render(report: Report) -> Clean:
    """Return the page."""
    style, theme, script = (_joined(names) for names in (STYLES, THEME, SCRIPTS))
    view = ReportView(report)
    better = any(row.comparison.status == "improved" for row in view.moved)
    mood = "worse" if report.verdict.status in _WORSE else "better" if better else "steady"
    named = {"Environment": report.environment, "Base's environment": report.base_environment}
    context = {
        **_lists(view),
        "most_rows": MOST_ROWS,
        "most_lines": MOST_LINES,
        "root": "",
        "version": report.perfci_version,
        "created": report.created_at[:16].replace("T", " "),
        "view": view,
        "report": report,
        "mood": mood,
        "sides": tuple(map(side_words, view.sides)),
        "modes": sorted(view.modes(every=True), key=lambda table: not table.changed),
        "scope": f"{counted(len(view.rows), 'comparison')} of {counted(view.cases, 'case')}; "
        f"{view.rounds}; {environment_names((report,))[0]}",
        "environments": [(name, each) for name, each in named.items() if each],
        "blame": BLAME,
        "policy": _policy(style, (theme, script)),
        "style": Safe(style),
        "theme": Safe(theme),
        "script": Safe(script),
        "drawn": Safe(literal(payload(view)).decode()),
    }
    return clean_lines(render_html("report/page.html.j2", context).decode())


def _lists(view: ReportView) -> dict[str, Any]:
    """Return the rows that stand open, by title, each with its reasons; and all other reasons.

    Only a case's first row has the case's reasons.
    """
    reasons: dict[str, list[str]] = {}
    for why in view.whys:
        about = f"{why.metric}: " if why.metric else ""
        reasons.setdefault(why.case, []).extend((f"{about}{why.placed}", *why.more))
    opened: dict[str, list[Row]] = {MOVED: []}
    for name, group in GROUPS.items():
        if group.on_page:
            rows = (row for row in view.groups[name] if not view.is_shown_as_failure(row))
            opened.setdefault(group.on_page, []).extend(rows)
    groups = {
        title: {
            "rows": [(row, reasons.pop(row.case, ())) for row in rows[:MOST_ROWS]],
            "more": max(0, len(rows) - MOST_ROWS),
        }
        for title, rows in opened.items()
    }
    elsewhere = [(case, reason) for case, lines in reasons.items() for reason in lines]
    return {"groups": groups, "elsewhere": elsewhere}


def _joined(names: Iterable[str]) -> str:
    return "\n".join(read_template(name) for name in names)


def _policy(style: str, scripts: Iterable[str]) -> Safe:
    """Return the content security policy: only this style and these scripts, by their hashes."""
    allowed = " ".join(map(_hash, scripts))
    return Safe(f"script-src {allowed}; style-src {_hash(style)}; img-src data:")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def payload(view: ReportView) -> dict[str, Any]:
    """Return the scripts' data: the rows, in the report's order, and the choices of the filters.

    The names of a row's fields stand there once. So do the texts that rows share: a row's note and
    facts are indices of ``texts``.
    """
    kinds = sorted(
        {row.comparison.status for row in view.rows}, key=lambda kind: (traits(kind).rank, kind)
    )
    metrics, causes, texts = _Indices(), _Indices(), _Indices()
    rows = [
        {
            "case": clean_line(row.case) or "unnamed",
            "metric": metrics.of(clean_line(row.metric, 100)) if row.has_numbers else -1,
            "unit": clean_line(row.comparison.unit, 30),
            "status": kinds.index(row.comparison.status),
            "cause": causes.of(row.cause),
            "sense": row.sense,
            "size": clean_line(row.change),
            "interval": clean_line(row.interval),
            "values": clean_line(row.values),
            "note": texts.of(clean_line(row.note.replace("`", ""), _LONGEST_NOTE)),
            "facts": [texts.of(clean_line(text)) for fact in row.facts for text in fact],
            "selection": selection_of(row.case),
            "change": _change(row),
            "sides": (_side(row.comparison.base), _side(row.comparison.head)),
            "paired": row.comparison.method == "paired_t",
        }
        for row in view.rows
    ]
    return {
        "metrics": tuple(metrics),
        "statuses": [kind.replace("_", " ") for kind in kinds],
        "causes": tuple(causes),
        "texts": tuple(texts),
        "replay": replay_command(view.report),
        "fields": tuple(rows[0]) if rows else (),
        "rows": [tuple(row.values()) for row in rows],
    }


class _Indices(dict[str, int]):
    """Texts with their indices, in the order in which they came."""

    def of(self, text: str) -> int:
        """Return the index of a text, which is added at the end if it is new."""
        return self.setdefault(text, len(self))


def _change(row: Row) -> dict[str, Any] | None:
    """Return a row's change, interval and margin: as ratios, or as differences in the unit."""
    if row.change_and_interval[0] is None:
        return None
    threshold = row.comparison.threshold
    around = (-threshold, threshold) if row.is_absolute else margin(threshold)
    names = ("estimate", "low", "high", "least", "most")
    numbers = zip(names, map(_short, (*row.change_and_interval, *around)), strict=True)
    return {"isRatio": not row.is_absolute, **dict(numbers)}


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
