"""An analysed history for people: the site's pages, Markdown, and lines to print."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from perfci.report.clean import clean_line
from perfci.report.site.catalogue import ListedBenchmark
from perfci.report.site.data import benchmark_files, search_file, timeline_file
from perfci.report.site.rows import TrendView, row_text
from perfci.report.site.words import shown
from perfci.report.templates import (
    LIMIT,
    cut,
    markdown_environment,
    read_template,
    render_html,
    tidy,
)
from perfci.trend import Change, SeriesKey, Trend
from perfci.units import counted

if TYPE_CHECKING:
    from jinja2 import Template

MOST_LISTED, MOST_EARLIER = 20, 40
"""Rows of each list on the overview. Its search finds all series."""
ASSETS = (
    "trend.css", "theme.js", "register.js", "elements.js", "numbers.js", "filters.js", "view.js",
    "plot.js", "chart.js", "card.js", "benchmark.js", "overview.js",
)  # fmt: skip
MOST_LINES, _LONGEST_NOTE = 20, 400
"""In the lines to print: rows of a list, characters of a note."""
MOST_ROWS, _MOST_NOTES = 25, 10
"""In the Markdown: rows of a list, and notes."""


def render_site(trend: Trend) -> Iterator[tuple[str, bytes]]:
    """Yield each file of the site: its path, with ``/``, and its bytes. ``index.html`` is last."""
    view = TrendView(trend)
    listed = view.listed
    changes: dict[SeriesKey, list[Change]] = {}
    for change in sorted(trend.changes, key=lambda change: change.after):
        changes.setdefault(change.series, []).append(change)
    for name in ASSETS:
        yield f"assets/{name}", read_template(f"trend/{name}").encode()
    for key, index in listed.indices.items():
        yield timeline_file(
            trend.timelines[key], index, listed.labels[key], trend.releases, trend.forge
        )
    for benchmark in listed.benchmarks:
        yield from benchmark_files(benchmark, listed, changes, view.standings)
        yield f"benchmarks/{benchmark.slug}.html", _benchmark_page(benchmark, view)
    name, search = search_file(listed, view.standings)
    yield name, search
    yield "index.html", _overview_page(view, len(search))


def _overview_page(view: TrendView, search_bytes: int) -> bytes:
    """Return ``index.html``: first what moved since the last report, then search.

    A list of all series with many ``search_bytes`` is loaded only when it is searched.
    """
    groups = view.groups
    mood = (
        "worse" if groups["worse"] or groups["open"] else "better" if groups["better"] else "steady"
    )
    context = {
        **_common(view.trend, root=""),
        "view": view,
        "trend": view.trend,
        "mood": "worse" if groups["worse"] or groups["open"] else mood,
        **view.rows(view.lists, MOST_LISTED),
        **view.rows({"earlier": groups["earlier"]}, MOST_EARLIER),
        "search_bytes": search_bytes,
    }
    return render_html("trend/overview.html.j2", context)


def _benchmark_page(benchmark: ListedBenchmark, view: TrendView) -> bytes:
    """Return one benchmark's page: a frame that scripts fill from the benchmark's data files."""
    keys = dict.fromkeys(series.key.environment for series in benchmark.series)
    cases = len({series.key.case for series in benchmark.series})
    context = {
        **_common(view.trend, root="../"),
        "name": shown(benchmark.name) or "unnamed",
        "slug": benchmark.slug,
        "timelines": sorted(view.listed.indices[key] for key in keys),
        "scope": f"{counted(cases, 'case')}, {counted(len(benchmark.series), 'chart')}",
    }
    return render_html("trend/benchmark.html.j2", context)


def _common(trend: Trend, root: str) -> dict[str, Any]:
    return {
        "root": root,
        "created": trend.created_at[:16].replace("T", " "),
        "version": trend.perfci_version,
    }


def trend_lines(trend: Trend) -> tuple[str, ...]:
    """Return the lines to print: plain, clean text."""
    view = TrendView(trend)
    listed = view.rows(view.lists, MOST_LINES)
    lines = [f"{line}." for line in (view.headline, view.early, view.scope) if line]
    titles = {"open": "Still worse:", "drifts": "Slow drift:"}
    for name in view.lists:
        lines += [titles[name]] if name in titles and listed[name] else []
        lines += [f"  {row_text(row, view.several)}" for row in listed[name]]
        lines += [f"  and {listed[f'{name}_more']} more"] if listed[f"{name}_more"] else []
    lines += [f"Note: {clean_line(note, _LONGEST_NOTE)}" for note in trend.notes]
    return tuple(lines)


def render_trend_markdown(trend: Trend, limit: int = LIMIT) -> str:
    """Return the trend as Markdown: what moved since the last report, then folds of the rest."""
    view = TrendView(trend)
    accepted = [event for event in view.groups["earlier"] if event.status == "acknowledged"]
    text = _template().render(
        view=view,
        notes=trend.notes[:_MOST_NOTES],
        notes_more=max(0, len(trend.notes) - _MOST_NOTES),
        **view.rows({**view.lists, "accepted": accepted}, MOST_ROWS),
    )
    return cut(tidy(text), limit)


@cache
def _template() -> Template:
    return markdown_environment().get_template("trend/trend.md.j2")
