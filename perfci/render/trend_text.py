"""The trend for a terminal: the one thing first, then a line for each change."""

from __future__ import annotations

from functools import cache

from jinja2 import Template

from perfci.render.clean import clean_line
from perfci.render.cutting import cut, tidy
from perfci.render.markdown import LIMIT, markdown_environment
from perfci.render.site import words
from perfci.render.site.catalogue import catalogue, standings
from perfci.render.site.event_groups import sort_events
from perfci.render.site.event_rows import event_rows
from perfci.render.site.health_view import tiles
from perfci.render.site.moved import Moved, drift_rows
from perfci.render.site.pages import scope_text
from perfci.trend.change import Trend

MOST_LINES = 20
_MOST_REPLACED = 3
_LONGEST = 400


def trend_lines(trend: Trend) -> tuple[str, ...]:
    """Return the lines to print: plain, clean text."""
    groups = sort_events(trend)
    listed = catalogue(trend, standings(trend))
    several = len(listed.labels) > 1
    first = (words.headline(trend, groups), words.too_early(trend), scope_text(trend, listed))
    lines = [f"{line}." for line in dict.fromkeys(filter(None, first))]
    new = (*groups.new_worse, *groups.new_better)
    lines += _some(event_rows(new[:MOST_LINES], trend, listed, drawn=False), len(new), several)
    if groups.open_worse:
        lines.append("Still worse:")
        rows = event_rows(groups.open_worse[:MOST_LINES], trend, listed, drawn=False)
        lines += _some(rows, len(groups.open_worse), several)
    if groups.drifts_worse:
        lines.append("Slow drift:")
        drifts = drift_rows(groups.drifts_worse[:MOST_LINES], trend, listed, drawn=False)
        lines += _some(drifts, len(groups.drifts_worse), several)
    replaced = trend.replacements[:_MOST_REPLACED]
    lines += [f"Environment replaced: {words.replacement_text(one)}" for one in replaced]
    lines += [f"Note: {clean_line(note, _LONGEST)}" for note in trend.notes]
    return tuple(lines)


def _some(rows: tuple[Moved, ...], all_of_them: int, several: bool) -> list[str]:
    lines = [_line(row, several) for row in rows]
    return lines + ([f"  and {all_of_them - len(rows)} more"] if all_of_them > len(rows) else [])


def _line(row: Moved, several: bool) -> str:
    parts = (
        f"{row.size} {words.meaning(row.worse)}",
        f"{row.case} {row.metric}",
        row.environment if several else "",
        row.commits,
        row.date,
        row.note,
        f"id {row.id}" if row.id else "",
    )
    return "  " + ", ".join(part for part in parts if part)


# The trend in a few lines of Markdown: for a job's summary or an issue.

MOST_ROWS = 25
_MOST_NOTES = 10


def render_trend_markdown(trend: Trend, limit: int = LIMIT) -> str:
    """Return what moved since last time, the worst first; folded, what is open or acknowledged."""
    groups = sort_events(trend)
    listed = catalogue(trend, standings(trend))
    new = (*groups.new_worse, *groups.new_better)
    accepted = [event for event in groups.earlier if event.status == "acknowledged"]
    headline, early = words.headline(trend, groups), words.too_early(trend)
    text = _template().render(
        headline=headline,
        early="" if early == headline else early,
        still=words.still_open(groups),
        since=trend.reported_before,
        scope=scope_text(trend, listed),
        new=event_rows(new[:MOST_ROWS], trend, listed, drawn=False),
        new_more=max(0, len(new) - MOST_ROWS),
        open=event_rows(groups.open_worse[:MOST_ROWS], trend, listed, drawn=False),
        open_more=max(0, len(groups.open_worse) - MOST_ROWS),
        replaced=[words.replacement_text(one) for one in trend.replacements[:_MOST_NOTES]],
        drifts=drift_rows(groups.drifts_worse[:MOST_ROWS], trend, listed, drawn=False),
        drifts_more=max(0, len(groups.drifts_worse) - MOST_ROWS),
        accepted=event_rows(accepted[:MOST_ROWS], trend, listed, drawn=False),
        accepted_more=max(0, len(accepted) - MOST_ROWS),
        several=len(listed.labels) > 1,
        tiles=tiles(trend.health),
        notes=trend.notes[:_MOST_NOTES],
        notes_more=max(0, len(trend.notes) - _MOST_NOTES),
    )
    return cut(tidy(text), limit)


@cache
def _template() -> Template:
    return markdown_environment().get_template("trend/trend.md.j2")
