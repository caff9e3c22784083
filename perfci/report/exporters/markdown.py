"""The pull-request comment: GitHub Markdown that takes ten seconds to read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from perfci.errors import UsageError
from perfci.model.report import Report
from perfci.report.clean import Clean, Safe, clean_lines, prose
from perfci.report.groups import GROUPS, RowGroup
from perfci.report.links import NO_LINKS, Links, environment_names, fact_table
from perfci.report.replay import replay_line
from perfci.report.rows import Row, metric_words
from perfci.report.templates import LIMIT, cut, markdown_environment, tidy, unbroken
from perfci.report.view import WORST_FIRST, ReportView, mark_of
from perfci.report.why import CaseWhy
from perfci.units import counted, format_share

if TYPE_CHECKING:
    from jinja2 import Template

HELP = "Write the comment here."
MARKER = "<!-- perfci -->"
"""The first line of a comment, by which perfci finds its own comment again."""
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")
_MOST = {
    "most": 1_000,  # a comment has room for fewer, and an untrusted report may hold 20,000
    "most_reasons": 5,
    "most_tests": 30,
    "most_tables": 10,
    "most_names": 20,
    "most_failures": 50,  # each with up to 4,000 characters of its output
}
"""The most entries that the templates show of each list. They count the rest."""
_OPEN = ("undecided", "not_comparable", "not_measured")
"""Groups that leave a case undecided."""
_HOW = {
    "compare": "measured side by side on {name}",
    "check": "measured on {name}, against its stored baseline",
}
"""How a command measured the two sides."""
_MOST_ACCEPTED = 5
"""Regressions that each get a table to paste that accepts them. More share one."""
_MOST_ROWS = 8
"""Open rows of all sections together."""
_FEWEST_ROWS = 4
"""Open rows of each section at least, however many sections there are."""
_MOST_FAILURES = 3
"""Open failures of a section."""


def _what(row: Row) -> str:
    """Return the metric with both sides' values, and the remarks."""
    values = f"{prose(metric_words(row.metric))} {unbroken(row.values)}" if row.has_numbers else ""
    return Safe(_joined(" · ", values, prose(row.remarks)))


def _fact(row: Row, name: str) -> str:
    return dict(row.facts).get(name, "")


def _joined(between: str, *texts: str) -> str:
    return between.join(filter(None, texts))


_COLUMNS: dict[str, tuple[tuple[str, bool, Callable[[Row], str]], ...]] = {
    "compared": (
        ("metric", False, _what),
        (
            "change",
            True,
            lambda row: Safe(f"{unbroken(row.change)} {unbroken(row.bracketed_interval)}".strip()),
        ),
        ("threshold", True, lambda row: unbroken(row.threshold)),
    ),
    "measured": (
        ("metric", False, lambda row: _joined("; ", metric_words(row.metric), row.note)),
        ("value", True, lambda row: unbroken(row.after)),
        ("95 % interval", True, lambda row: unbroken(row.head_interval)),
    ),
    "tests": (
        ("metric", False, lambda row: row.metric),
        ("test", False, lambda row: _fact(row, "test")),
        ("p", True, lambda row: unbroken(_fact(row, "p"))),
        ("adjusted", True, lambda row: unbroken(_fact(row, "p adjusted"))),
        ("Cohen's d", True, lambda row: unbroken(_fact(row, "Cohen's d"))),
    ),
}
"""The columns after the case's in each table of rows: heading, whether it is right-aligned,
and a row's cell."""


def render(report: Report, limit: int = LIMIT) -> Clean:
    """Return the comment as GitHub Markdown, at most ``limit`` characters long."""
    return clean_lines(render_comment((report,), limit))


def render_comment(
    reports: Sequence[Report], limit: int = LIMIT, head_sha: str = "", links: Links = NO_LINKS
) -> str:
    """Return one comment on several reports, one for each environment.

    The first line is ``MARKER``. The second line names ``head_sha`` if that is given. Commits and
    lines of code that ``links`` knows become links. Raises UsageError without a report, or if
    ``head_sha`` is not a hash.
    """
    if not reports:
        raise UsageError(
            "no-report", "no report to comment on", "Name the files that --json wrote."
        )
    if head_sha and not _SHA.fullmatch(head_sha):
        raise UsageError(
            "bad-sha",
            f"{head_sha[:80]!r} is not a commit's hash",
            "Give 7 to 64 hexadecimal digits.",
        )
    context = _context(tuple(map(ReportView, reports)), head_sha, links)
    return cut(tidy(_template().render(context)), limit)


@cache
def _template() -> Template:
    environment = markdown_environment()
    environment.globals |= _MOST | {"by_case": by_case, "columns": _COLUMNS, "unseen": unseen_text}
    return environment.get_template("comment.md.j2")


def _context(views: tuple[ReportView, ...], head_sha: str, links: Links) -> dict[str, Any]:
    names = environment_names([view.report for view in views])
    worst = min((view.word for view in views), key=WORST_FIRST.index)
    part = any(view.part for view in views)
    several = len(views) > 1
    pairs = list(zip(views, names, strict=True))
    most = max(_FEWEST_ROWS, _MOST_ROWS // len(views))
    title = "; ".join(f"{view.word}{view.part} on {name}" for view, name in pairs)
    return {
        "marker": Safe(MARKER),
        "head_marker": Safe(f"<!-- perfci head={head_sha} -->") if head_sha else "",
        "links": links,
        "several": several,
        "mark": mark_of(worst, part=part),
        "title": f"{'incomplete: ' * part}{title}" if several else views[0].title,
        "warnings": dict.fromkeys(text for view in views for text in view.warnings),
        "sections": [_section(view, name, most) for view, name in pairs],
        "spent": "; ".join(f"{view.rounds} on {name}" for view, name in pairs)
        if several
        else views[0].spent,
        "notes": dict.fromkeys(
            f"{note} (on {name})" if several else note
            for view, name in pairs
            for note in view.report.notes
        ),
        "tables": [(name if several else "", fact_table(view.report)) for view, name in pairs],
    }


def _section(view: ReportView, name: str, most: int) -> dict[str, Any]:
    """Return the values that the templates read of one report, at most ``most`` open rows."""
    report = view.report
    moved = [row for row in view.moved if not view.is_shown_as_failure(row)]
    shown = _deciding(view, moved)[:most]
    above = set(shown) | set(view.groups["new"] if report.is_one_sided else ())
    groups = {
        name: [row for row in rows if row not in above and not view.is_shown_as_failure(row)]
        for name, rows in view.groups.items()
    }
    order = {case: index for index, case in enumerate(dict.fromkeys(row.case for row in shown))}
    whys = sorted(view.whys, key=lambda why: order.get(why.case, len(order)))
    folds = _folds(view, groups, whys)
    return {
        "view": view,
        "name": name,
        "tally": _tally(view),
        "how": _HOW.get(report.command, "measured on {name}").format(name=name),
        "shown": shown,
        "tests": _tested(moved, view),
        "because": whys[:_MOST_ROWS],
        "failures": view.failures[:_MOST_FAILURES],
        "replay": replay_line(report, [row.comparison for row in shown]),
        "accept": _acceptance(
            row for row in shown if row.comparison.status == "regressed" and row.gates
        ),
        "folded": ", ".join(f"{count} {group.heading.lower()}" for group, _, count in folds),
        "folds": folds,
    }


def _tally(view: ReportView) -> str:
    """Return how many cases failed, are undecided and passed, or "" if all passed."""
    marks = dict.fromkeys(view.failed, "fail")
    worst_first = ("regressed", *_OPEN, *(GROUPS.keys() - {"regressed", "new", "removed", *_OPEN}))
    for name in worst_first:
        word = "fail" if name == "regressed" else "inconclusive" if name in _OPEN else "pass"
        for row in view.groups[name]:
            marks.setdefault(row.case, word)
    counts = Counter(marks.values())
    if view.report.is_one_sided or counts.keys() <= {"pass"}:
        return ""
    words = ("fail", "inconclusive", "pass")
    return " ".join(f"{mark_of(word)} {counts[word]}" for word in words if counts[word])


def by_case(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of each case together, the cases in the order of their first row."""
    order: dict[str, int] = {}
    for row in rows:
        order.setdefault(row.case, len(order))
    return sorted(rows, key=lambda row: order[row.case])


def _deciding(view: ReportView, moved: Sequence[Row]) -> Sequence[Row]:
    """Return the rows that decide the verdict, the worst first.

    These are the rows that fail the report, or else the undecided rows, or else all moved rows.
    """
    bad = [
        row
        for row in moved
        if row.comparison.status == "failed" or (row.comparison.status == "regressed" and row.gates)
    ]
    accepted = [row for row in moved if row.comparison.accepted]
    if bad:
        return [*bad, *accepted]
    if view.word == "inconclusive" and view.groups["undecided"]:
        return [*view.groups["undecided"], *accepted]
    return moved


def _tested(moved: Sequence[Row], view: ReportView) -> list[Row]:
    """Return the rows with a test, those that moved first. Rows for information are left out."""
    others = (*view.groups["undecided"], *view.groups["unchanged"])
    tested = [
        *(row for row in moved if row.comparison.p is not None or row.comparison.method == "exact"),
        *(row for row in others if row.comparison.p is not None),
    ]
    return [row for row in tested if row.comparison.gate != "info"]


def unseen_text(rows: Sequence[Row]) -> str:
    """Return one line on the undecided metrics that fail nothing, and how to see more of them."""
    by_metric: dict[str, list[Row]] = {}
    for row in rows:
        by_metric.setdefault(row.comparison.metric, []).append(row)
    texts = []
    for metric, rows_of_metric in by_metric.items():
        text = f"{metric} in {counted(len(rows_of_metric), 'case')}"
        if known := [
            row.comparison.detectable
            for row in rows_of_metric
            if row.comparison.detectable is not None
        ]:
            text += f", at worst a change of {format_share(max(known))} would have been detected"
        texts.append(text)
    return f"{'; '.join(texts)}. More `--rounds` show smaller changes."


def _acceptance(rows: Iterable[Row]) -> str:
    """Return the TOML tables for the configuration that accept ``rows``; one table for many."""
    named = [(row.case, row.comparison.metric) for row in rows]
    if len(named) > _MOST_ACCEPTED:
        cases, metrics = ({*names} for names in zip(*named, strict=True))
        named = [
            (min(cases) if len(cases) == 1 else "*", min(metrics) if len(metrics) == 1 else "*")
        ]
    tables = (
        "[[tool.perfci.accept]]\n"
        f"case = {json.dumps(case, ensure_ascii=False)}\n"
        f"metric = {json.dumps(metric, ensure_ascii=False)}\n"
        'because = "…"'
        for case, metric in named
    )
    return "\n\n".join(tables)


def _folds(
    view: ReportView, groups: Mapping[str, Sequence[Row]], whys: Sequence[CaseWhy]
) -> list[tuple[RowGroup, Sequence[Any], int]]:
    """Return each fold of the section: its group, the entries to show, and how many it has."""
    report = view.report
    lists: dict[str, tuple[tuple[RowGroup, Sequence[Any]], ...]] = {
        "improved": (
            (RowGroup("More reasons why", "why"), whys[_MOST_ROWS:]),
            (RowGroup("More that differ inside", "inside"), [why for why in whys if why.more]),
            (RowGroup("More failed", "failed"), view.failures[_MOST_FAILURES:]),
        ),
        "removed": (
            (RowGroup("Skipped", "reasons"), list(report.skipped.items())),
            (RowGroup("Not measured", "reasons"), list(report.not_measured.items())),
        ),
    }
    folds = []
    for name, group in GROUPS.items():
        rows = groups[name]
        gating = [row for row in rows if row.comparison.gate != "info"]
        folds.append((group, gating if name == "unchanged" else rows, len(rows)))
        folds += [(other, entries, len(entries)) for other, entries in lists.get(name, ())]
    return [fold for fold in folds if fold[-1]]
