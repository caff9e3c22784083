"""The site's HTML pages. What is not Markup is escaped by the template engine itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfci.render.clean import clean_line
from perfci.render.site import words
from perfci.render.site.benchmark_data import Attached, benchmark_files
from perfci.render.site.catalogue import (
    Benchmark,
    Catalogue,
    catalogue,
    shown,
    standings,
)
from perfci.render.site.data import search_file, timeline_file
from perfci.render.site.event_groups import SortedEvents, sort_events
from perfci.render.site.event_rows import event_rows
from perfci.render.site.feed import badge_file, feed_file
from perfci.render.site.health_view import missing_rows, runner_rows, tiles
from perfci.render.site.moved import drift_rows
from perfci.render.templates import read_template, render_html
from perfci.trend.change import Change, Trend
from perfci.trend.timeline.series import Distributions, SeriesKey
from perfci.units import counted

MOST_NEW, MOST_OPEN, MOST_EARLIER, MOST_REPLACED = 20, 20, 40, 10
"""Rows drawn on the overview; the search finds the others."""
ASSETS = (
    "trend.css", "theme.js", "register.js", "elements.js", "numbers.js", "filters.js",
    "decode.js", "plot.js", "chart.js", "lanes.js", "compare.js", "runs.js", "card.js",
    "benchmark.js", "overview.js", "address.js", "csv.js", "forge.js", "view.js",
)  # fmt: skip


def overview_page(trend: Trend, groups: SortedEvents, listed: Catalogue) -> bytes:
    """Return ``index.html``: what moved since last time first, then search, then health."""
    new = (*groups.new_worse, *groups.new_better)
    headline = words.headline(trend, groups)
    context = {
        **_common(trend, root=""),
        "headline": headline,
        "mood": "worse" if groups.new_worse else "better" if groups.new_better else "steady",
        "still": words.still_open(groups),
        "early": "" if words.too_early(trend) == headline else words.too_early(trend),
        "since": trend.reported_before,
        "scope": scope_text(trend, listed),
        "new": event_rows(new[:MOST_NEW], trend, listed),
        "new_more": max(0, len(new) - MOST_NEW),
        "open": event_rows(groups.open_worse[:MOST_OPEN], trend, listed),
        "open_more": max(0, len(groups.open_worse) - MOST_OPEN),
        "drifts": drift_rows(groups.drifts_worse[:MOST_OPEN], trend, listed),
        "drifts_more": max(0, len(groups.drifts_worse) - MOST_OPEN),
        "earlier": event_rows(groups.earlier[:MOST_EARLIER], trend, listed, drawn=False),
        "earlier_more": max(0, len(groups.earlier) - MOST_EARLIER),
        "one_environment": len(listed.labels) == 1,
        "replaced": tuple(
            words.replacement_text(one) for one in trend.replacements[:MOST_REPLACED]
        ),
        "replaced_more": max(0, len(trend.replacements) - MOST_REPLACED),
        "tiles": tiles(trend.health),
        "runners": runner_rows(trend.health, listed),
        "missing": missing_rows(trend.health, listed),
        "notes": tuple(shown_note(note) for note in trend.notes),
        "empty": not trend.series,
    }
    return render_html("trend/overview.html.j2", context)


def benchmark_page(benchmark: Benchmark, trend: Trend, listed: Catalogue) -> bytes:
    """Return one benchmark's page: a frame, which its scripts fill from its own data files."""
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


def asset_files() -> tuple[tuple[str, bytes], ...]:
    """Return the style sheet and the scripts, each with its path in the site."""
    return tuple((f"assets/{name}", read_template(f"trend/{name}").encode()) for name in ASSETS)


def shown_note(note: str) -> str:
    """Return a note, which may carry untrusted names, as visible characters."""
    return clean_line(note, 1000)


def _common(trend: Trend, root: str) -> dict[str, Any]:
    return {
        "root": root,
        "created": trend.created_at[:16].replace("T", " "),
        "version": trend.perfci_version,
    }


def scope_text(trend: Trend, listed: Catalogue) -> str:
    """Return over how much the report goes, in one line."""
    runs = [run for timeline in trend.timelines.values() for run in timeline.runs]
    parts = [
        f"{len(trend.series):,} series of {counted(len(listed.benchmarks), 'benchmark')}",
        f"{counted(len(runs), 'run')} in {counted(len(trend.timelines), 'environment')}",
    ]
    newest = max((run.measured_at for run in runs), default="")
    return "; ".join(parts) + (f"; the newest of {words.day(newest)}" if newest else "")


# The whole site as files: small pages, and the data that each of them loads.


def render_site(trend: Trend, distributions: Distributions) -> Iterator[tuple[str, bytes]]:
    """Yield each file of the site: its path, with ``/``, and its bytes. ``index.html`` is last.

    ``distributions`` holds per-worker values by series and run id, as far as they are to be
    compared. One file is in memory at a time.
    """
    standing = standings(trend)
    listed = catalogue(trend, standing)
    attached = Attached(
        changes=_by_series(trend.changes),
        standings=standing,
        distributions=distributions,
        rows={
            key: {run.id: row for row, run in enumerate(timeline.runs)}
            for key, timeline in trend.timelines.items()
        },
    )
    yield from asset_files()
    for key, place in listed.places.items():
        yield timeline_file(
            trend.timelines[key], place, listed.labels[key], trend.releases, trend.forge
        )
    for benchmark in listed.benchmarks:
        yield from benchmark_files(benchmark, listed, attached)
        yield f"benchmarks/{benchmark.slug}.html", benchmark_page(benchmark, trend, listed)
    yield search_file(listed, standing)
    groups = sort_events(trend)
    yield feed_file(trend, listed)
    yield badge_file(groups, trend)
    yield "index.html", overview_page(trend, groups, listed)


def _by_series(changes: tuple[Change, ...]) -> dict[SeriesKey, tuple[Change, ...]]:
    found: dict[SeriesKey, list[Change]] = {}
    for change in changes:
        found.setdefault(change.series, []).append(change)
    return {
        key: tuple(sorted(of_one, key=lambda change: change.after)) for key, of_one in found.items()
    }
