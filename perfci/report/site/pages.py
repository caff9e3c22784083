"""An analysed history for people: the site's pages, Markdown, and lines to print."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from perfci.report.clean import clean_line
from perfci.report.site import words
from perfci.report.site.data import benchmark_files, search_file, timeline_file
from perfci.report.site.lists import (
    Catalogue,
    ListedBenchmark,
    TrendRows,
    catalogue,
    row_text,
    standings,
)
from perfci.report.site.words import SortedEvents, shown, sort_events
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

MOST_NEW, MOST_OPEN, MOST_EARLIER = 20, 20, 40
"""Rows of each list on the overview. Its search finds all series."""
ASSETS = (
    "trend.css", "theme.js", "register.js", "elements.js", "numbers.js", "filters.js",
    "decode.js", "plot.js", "chart.js", "runs.js", "card.js", "benchmark.js", "overview.js",
    "address.js", "forge.js", "view.js",
)  # fmt: skip
MOST_LINES, _LONGEST_NOTE = 20, 400
"""In the lines to print: rows of a list, characters of a note."""
MOST_ROWS, _MOST_NOTES = 25, 10
"""In the Markdown: rows of a list, and notes."""


def render_site(trend: Trend) -> Iterator[tuple[str, bytes]]:
    """Yield each file of the site: its path, with ``/``, and its bytes. ``index.html`` is last."""
    standing = standings(trend)
    listed = catalogue(trend, standing)
    changes = _by_series(trend.changes)
    for name in ASSETS:
        yield f"assets/{name}", read_template(f"trend/{name}").encode()
    for key, place in listed.places.items():
        yield timeline_file(
            trend.timelines[key], place, listed.labels[key], trend.releases, trend.forge
        )
    for benchmark in listed.benchmarks:
        yield from benchmark_files(benchmark, listed, changes, standing)
        yield f"benchmarks/{benchmark.slug}.html", benchmark_page(benchmark, trend, listed)
    name, search = search_file(listed, standing)
    yield name, search
    groups = sort_events(trend)
    yield "index.html", overview_page(trend, groups, listed, len(search))


def _by_series(changes: tuple[Change, ...]) -> dict[SeriesKey, tuple[Change, ...]]:
    by_series: dict[SeriesKey, list[Change]] = {}
    for change in sorted(changes, key=lambda change: change.after):
        by_series.setdefault(change.series, []).append(change)
    return {key: tuple(of_series) for key, of_series in by_series.items()}


def overview_page(
    trend: Trend, groups: SortedEvents, listed: Catalogue, search_bytes: int
) -> bytes:
    """Return ``index.html``: first what moved since the last report, then search.

    A list of all series with many ``search_bytes`` is loaded only when it is searched.
    """
    new = (*groups.new_worse, *groups.new_better)
    rows = TrendRows(trend, listed)
    context = {
        **_common(trend, root=""),
        **_summary(trend, groups, listed),
        "mood": "worse" if groups.open else "better" if groups.new_better else "steady",
        **rows.first("new", new, MOST_NEW),
        **rows.first("open", groups.open_worse, MOST_OPEN),
        **rows.first("drifts", groups.drifts_worse, MOST_OPEN),
        **TrendRows(trend, listed, drawn=False).first("earlier", groups.earlier, MOST_EARLIER),
        "one_environment": len(listed.labels) == 1,
        "notes": [clean_line(note, 1000) for note in trend.notes],
        "empty": not trend.series,
        "search_bytes": search_bytes,
        "series": len(trend.series),
    }
    return render_html("trend/overview.html.j2", context)


def _summary(trend: Trend, groups: SortedEvents, listed: Catalogue) -> dict[str, Any]:
    """Return the sentences above all lists, for the overview and for Markdown."""
    headline, early = words.headline(trend, groups), words.too_early(trend)
    return {
        "headline": headline,
        "early": "" if early == headline else early,
        "since": trend.reported_before,
        "scope": scope_text(trend, listed),
    }


def benchmark_page(benchmark: ListedBenchmark, trend: Trend, listed: Catalogue) -> bytes:
    """Return one benchmark's page: a frame that scripts fill from the benchmark's data files."""
    keys = dict.fromkeys(series.key.environment for series in benchmark.series)
    cases = len({series.key.case for series in benchmark.series})
    context = {
        **_common(trend, root="../"),
        "name": shown(benchmark.name) or "unnamed",
        "slug": benchmark.slug,
        "timelines": sorted(listed.places[key] for key in keys),
        "scope": f"{counted(cases, 'case')}, {counted(len(benchmark.series), 'chart')}",
    }
    return render_html("trend/benchmark.html.j2", context)


def _common(trend: Trend, root: str) -> dict[str, Any]:
    return {
        "root": root,
        "created": trend.created_at[:16].replace("T", " "),
        "version": trend.perfci_version,
    }


def scope_text(trend: Trend, listed: Catalogue) -> str:
    """Return the extent of the trend in one line: series, benchmarks, runs, environments."""
    runs = [run for timeline in trend.timelines.values() for run in timeline.runs]
    parts = [
        f"{len(trend.series):,} series of {counted(len(listed.benchmarks), 'benchmark')}",
        f"{counted(len(runs), 'run')} in {counted(len(trend.timelines), 'environment')}",
    ]
    newest = max((run.measured_at for run in runs), default="")
    return "; ".join(parts) + (f"; the newest of {words.day(newest)}" if newest else "")


def trend_lines(trend: Trend) -> tuple[str, ...]:
    """Return the lines to print: plain, clean text."""
    groups = sort_events(trend)
    listed = catalogue(trend, standings(trend))
    several = len(listed.labels) > 1
    first = (words.headline(trend, groups), words.too_early(trend), scope_text(trend, listed))
    lines = [f"{line}." for line in dict.fromkeys(filter(None, first))]
    rows = TrendRows(trend, listed, drawn=False)
    for title, items in (
        ("", (*groups.new_worse, *groups.new_better)),
        ("Still worse:", groups.open_worse),
        ("Slow drift:", groups.drifts_worse),
    ):
        lines += [title] if title and items else []
        shown = rows.of(items[:MOST_LINES])
        lines += [f"  {row_text(row, several)}" for row in shown]
        lines += [f"  and {len(items) - len(shown)} more"] if len(items) > len(shown) else []
    lines += [f"Note: {clean_line(note, _LONGEST_NOTE)}" for note in trend.notes]
    return tuple(lines)


def render_trend_markdown(trend: Trend, limit: int = LIMIT) -> str:
    """Return the trend as Markdown: what moved since the last report, then folds of the rest."""
    groups = sort_events(trend)
    listed = catalogue(trend, standings(trend))
    new = (*groups.new_worse, *groups.new_better)
    accepted = [event for event in groups.earlier if event.status == "acknowledged"]
    rows = TrendRows(trend, listed, drawn=False)
    text = _template().render(
        **_summary(trend, groups, listed),
        **rows.first("new", new, MOST_ROWS),
        **rows.first("open", groups.open_worse, MOST_ROWS),
        **rows.first("drifts", groups.drifts_worse, MOST_ROWS),
        **rows.first("accepted", accepted, MOST_ROWS),
        several=len(listed.labels) > 1,
        notes=trend.notes[:_MOST_NOTES],
        notes_more=max(0, len(trend.notes) - _MOST_NOTES),
    )
    return cut(tidy(text), limit)


@cache
def _template() -> Template:
    return markdown_environment().get_template("trend/trend.md.j2")
