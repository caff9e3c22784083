"""The pull-request comment: GitHub Markdown that takes ten seconds to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from perfci.errors import UsageError
from perfci.model.report import Report
from perfci.report.clean import Clean, Safe, clean_lines, prose
from perfci.report.links import NO_LINKS, Links, environment_names, fact_table
from perfci.report.rows import Row, metric_words
from perfci.report.sections import by_case, sections, unseen_text
from perfci.report.templates import LIMIT, cut, markdown_environment, tidy, unbroken
from perfci.report.view import WORST_FIRST, ReportView, mark_of

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


def _what(row: Row) -> str:
    """Return the metric with both sides' values, and the remarks."""
    values = f"{prose(metric_words(row.metric))} {unbroken(row.values)}" if row.has_numbers else ""
    return Safe(" · ".join(filter(None, (values, prose(row.remarks)))))


_COLUMNS: dict[str, tuple[tuple[str, bool, Callable[[Row], str]], ...]] = {
    "compared": (
        ("metric", False, _what),
        ("change", True, lambda row: Safe(f"{unbroken(row.change)} {unbroken(row.span)}".strip())),
        ("limit", True, lambda row: unbroken(row.limit)),
    ),
    "measured": (
        (
            "metric",
            False,
            lambda row: "; ".join(filter(None, (metric_words(row.metric), row.note))),
        ),
        ("value", True, lambda row: unbroken(row.after)),
        ("95 % interval", True, lambda row: unbroken(row.head_interval)),
    ),
    "tests": (
        ("metric", False, lambda row: row.metric),
        ("test", False, lambda row: row.test),
        ("p", True, lambda row: unbroken(row.p)),
        ("adjusted", True, lambda row: unbroken(row.p_adjusted)),
        ("Cohen's d", True, lambda row: unbroken(row.effect)),
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
    ``head_sha`` is no hash.
    """
    if not reports:
        raise UsageError(
            "no-report", "there is no report to comment on", "Name the files that --json wrote."
        )
    if head_sha and not _SHA.fullmatch(head_sha):
        raise UsageError(
            "no-sha", f"{head_sha[:80]!r} is no commit's hash", "Give 7 to 64 hexadecimal digits."
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
    title = "; ".join(f"{view.status} on {name}" for view, name in pairs)
    return {
        "marker": Safe(MARKER),
        "head_marker": Safe(f"<!-- perfci head={head_sha} -->") if head_sha else "",
        "links": links,
        "several": several,
        "mark": mark_of(worst, part=part),
        "title": f"{'incomplete: ' * part}{title}" if several else views[0].title,
        "warnings": dict.fromkeys(text for view in views for text in view.warnings),
        "sections": sections(views, names),
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
