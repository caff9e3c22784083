"""The pull-request comment: GitHub Markdown that takes ten seconds to read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from perfci.errors import UsageError
from perfci.model.report import Comparison, Report
from perfci.report import rows
from perfci.report.clean import Clean, Safe, clean_lines
from perfci.report.links import NO_LINKS, Links, environment_names, fact_table
from perfci.report.outline import (
    Outline,
    injected_text,
    outline,
    part_text,
    unseen_text,
)
from perfci.report.rows import accepted_text, change_text, has_numbers, interval_text, side_text
from perfci.report.sections import (
    MOST_REASONS,
    MOST_TABLE_ROWS,
    by_case,
    mark_of,
    sections,
    status_of,
    verdict_word,
)
from perfci.report.templates import LIMIT, cut, markdown_environment, tidy
from perfci.units import counted, format_duration, format_share

if TYPE_CHECKING:
    from jinja2 import Template

HELP = "Write the comment here."
MARKER = "<!-- perfci -->"
"""The first line of a comment, by which perfci finds its own comment again."""
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")
_WORST_FIRST = ("fail", "error", "inconclusive", "pass", "run")
_MOST = {
    "most": MOST_TABLE_ROWS,
    "most_reasons": MOST_REASONS,
    "most_tests": 30,
    "most_tables": 10,
    "most_names": 20,
    "most_failures": 50,  # each with up to 4,000 characters of its output
}
"""The most entries that the templates show of each list. They count the rest."""


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
    context = _context(tuple(map(outline, reports)), head_sha, links)
    return cut(tidy(_template().render(context)), limit)


@cache
def _template() -> Template:
    environment = markdown_environment()
    environment.globals |= _MOST | {
        "by_case": by_case,
        "change": lambda row: (_moved_text(row), _span_text(row)),
        "limit": lambda row: rows.limit_text(row) if has_numbers(row) else "",
        "what": rows.metric_words,
        "values": _values_text,
        "remarks": _remarks,
        "side_value": side_text,
        "side_interval": rows.side_interval,
        "note": rows.note,
        "unseen": unseen_text,
        "numbers": has_numbers,
        "statistics": rows,
    }
    return environment.get_template("comment.md.j2")


def _context(outlines: tuple[Outline, ...], head_sha: str, links: Links) -> dict[str, Any]:
    reports = [each.report for each in outlines]
    names = environment_names(reports)
    parts = sections(outlines, names)
    several = len(reports) > 1
    worst = min(map(verdict_word, reports), key=_WORST_FIRST.index)
    part = any(report.shard for report in reports)
    return {
        "marker": Safe(MARKER),
        "head_marker": Safe(f"<!-- perfci head={head_sha} -->") if head_sha else "",
        "links": links,
        "several": several,
        "mark": mark_of(worst, part=part) if several else parts[0]["mark"],
        "title": _of_several(reports, names) if several else parts[0]["title"],
        "warnings": _warnings(reports),
        "sections": parts,
        "spent": _spent(reports, names),
        "notes": _notes(reports, names),
        "tables": [
            (name if several else "", fact_table(report))
            for name, report in zip(names, reports, strict=True)
        ],
    }


def _warnings(reports: Sequence[Report]) -> tuple[str, ...]:
    texts = (injected_text, part_text)
    every = (text(report) for report in reports for text in texts)
    return tuple(dict.fromkeys(filter(None, every)))


def _of_several(reports: Sequence[Report], names: Sequence[str]) -> str:
    """Return each environment's verdict in one line. Shards alone make it ``incomplete``."""
    part = "incomplete: " if any(report.shard for report in reports) else ""
    pairs = zip(reports, names, strict=True)
    return part + "; ".join(f"{status_of(report)} on {name}" for report, name in pairs)


def _spent(reports: Sequence[Report], names: Sequence[str]) -> str:
    """Return rounds and time: of each report, or of a single one with the share of measuring."""
    spent = [
        f"{counted(report.timing.rounds, 'round')} in {format_duration(report.timing.wall_s)}"
        for report in reports
    ]
    if len(reports) > 1:
        return "; ".join(f"{text} on {name}" for text, name in zip(spent, names, strict=True))
    timing = reports[0].timing
    share = round(timing.measured_s / timing.wall_s, 2) if timing.wall_s > 0 else None
    return f"{spent[0]}, {format_share(share)} of it measuring"


def _notes(reports: Sequence[Report], names: Sequence[str]) -> tuple[str, ...]:
    """Return every note once. Of several reports, a note names its environment."""
    notes: dict[str, None] = {}
    for report, name in zip(reports, names, strict=True):
        on = f" (on {name})" if len(reports) > 1 else ""
        notes |= dict.fromkeys(f"{note}{on}" for note in report.notes)
    return tuple(notes)


def _values_text(row: Comparison) -> str:
    """Return both sides' values, ``222 → 286 µs``. A common unit is written once."""
    base, head = side_text(row.base, row.unit), side_text(row.head, row.unit)
    number, _, unit = base.partition(" ")
    if unit and head.endswith(f" {unit}"):
        base = number
    return f"{base} → {head}" if row.base or row.head else ""


def _moved_text(row: Comparison) -> str:
    """Return the change. For a failed row without numbers, return that it failed."""
    if row.status == "failed" and not has_numbers(row):
        return "failed"
    return change_text(row)


def _span_text(row: Comparison) -> str:
    """Return the change's 95 % interval in brackets, ``(27.4…30.3)``.

    The change itself shows the unit and the sign. If the ends differ in sign, both signs stay.
    """
    text = interval_text(row)
    if not text or row.difference is not None:
        return f"({text})" if text else ""
    lo, _, hi = text.removesuffix(" %").partition(" … ")
    if lo[0] == hi[0] and lo[0] in "+×":
        lo, hi = lo[1:], hi[1:]
    return f"({lo}…{hi})"


def _remarks(row: Comparison) -> str:
    """Return the remarks that an open row shows. The number of measurements is in the fold."""
    sight = ""
    if row.status == "inconclusive" and row.detectable is not None and not row.findings:
        sight = f"a change of {format_share(row.detectable)} was in sight"
    confirmed = {True: "confirmed", False: "unconfirmed", None: ""}[row.confirmed]
    if row.confirmed and row.status != "regressed":
        confirmed = ""
    accepted = accepted_text(row.accepted, row) if row.accepted else ""
    return "; ".join(part for part in (accepted, confirmed, sight, *row.warnings) if part)
