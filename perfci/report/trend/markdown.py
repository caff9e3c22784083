"""The trend in a few lines of Markdown: for a job's summary or an issue."""

from __future__ import annotations

from functools import cache

from jinja2 import Template

from perfci.report.cutting import cut, tidy
from perfci.report.markdown import LIMIT, markdown_environment
from perfci.report.trend import words
from perfci.report.trend.catalogue import catalogue
from perfci.report.trend.health_view import tiles
from perfci.report.trend.moved import drift_rows, moved_rows
from perfci.report.trend.pages import scope_text
from perfci.report.trend.standing import sort_changes, standings
from perfci.trend.change import Trend

MOST_ROWS = 25
_MOST_NOTES = 10


def render_trend_markdown(trend: Trend, limit: int = LIMIT) -> str:
    """Return what moved since last time, the worst first; folded, what is open or acknowledged."""
    groups = sort_changes(trend)
    listed = catalogue(trend, standings(trend))
    new = (*groups.new_worse, *groups.new_better)
    accepted = [change for change in groups.earlier if change.status == "acknowledged"]
    headline, early = words.headline(trend, groups), words.too_early(trend)
    text = _template().render(
        headline=headline,
        early="" if early == headline else early,
        still=words.still_open(groups),
        scope=scope_text(trend, listed),
        new=moved_rows(new[:MOST_ROWS], trend, listed, drawn=False),
        new_more=max(0, len(new) - MOST_ROWS),
        open=moved_rows(groups.open_worse[:MOST_ROWS], trend, listed, drawn=False),
        open_more=max(0, len(groups.open_worse) - MOST_ROWS),
        drifts=drift_rows(groups.drifts_worse[:MOST_ROWS], trend, listed, drawn=False),
        drifts_more=max(0, len(groups.drifts_worse) - MOST_ROWS),
        accepted=moved_rows(accepted[:MOST_ROWS], trend, listed, drawn=False),
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
