"""The trend for a terminal: the one thing first, then a line for each change."""

from __future__ import annotations

from perfci.report.clean import clean_line
from perfci.report.trend import words
from perfci.report.trend.catalogue import catalogue
from perfci.report.trend.moved import Moved, drift_rows, moved_rows
from perfci.report.trend.pages import scope_text
from perfci.report.trend.standing import sort_changes, standings
from perfci.trend.change import Trend

MOST_LINES = 20
_LONGEST = 400


def trend_lines(trend: Trend) -> tuple[str, ...]:
    """Return the lines to print: plain, clean text."""
    groups = sort_changes(trend)
    listed = catalogue(trend, standings(trend))
    several = len(listed.labels) > 1
    first = (words.headline(trend, groups), words.too_early(trend), scope_text(trend, listed))
    lines = [f"{line}." for line in dict.fromkeys(filter(None, first))]
    new = (*groups.new_worse, *groups.new_better)
    lines += _some(moved_rows(new[:MOST_LINES], trend, listed, drawn=False), len(new), several)
    if groups.open_worse:
        lines.append("Still worse:")
        rows = moved_rows(groups.open_worse[:MOST_LINES], trend, listed, drawn=False)
        lines += _some(rows, len(groups.open_worse), several)
    if groups.drifts_worse:
        lines.append("Slow drift:")
        drifts = drift_rows(groups.drifts_worse[:MOST_LINES], trend, listed, drawn=False)
        lines += _some(drifts, len(groups.drifts_worse), several)
    lines += [f"Note: {clean_line(note, _LONGEST)}" for note in trend.notes]
    return tuple(lines)


def _some(rows: tuple[Moved, ...], all_of_them: int, several: bool) -> list[str]:
    lines = [_line(row, several) for row in rows]
    return lines + ([f"  and {all_of_them - len(rows)} more"] if all_of_them > len(rows) else [])


def _line(row: Moved, several: bool) -> str:
    told = (
        f"{row.size} {words.meaning(row.worse)}",
        f"{row.case} {row.metric}",
        row.environment if several else "",
        row.commits,
        row.date,
        row.note,
        f"id {row.id}" if row.id else "",
    )
    return "  " + ", ".join(part for part in told if part)
