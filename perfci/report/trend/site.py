"""The whole site as files: small pages, and the data that each of them loads."""

from __future__ import annotations

from collections.abc import Iterator

from perfci.report.trend.benchmark_data import Attached, benchmark_files
from perfci.report.trend.catalogue import catalogue
from perfci.report.trend.pages import asset_files, benchmark_page, overview_page
from perfci.report.trend.search_data import search_file
from perfci.report.trend.standing import sort_changes, standings
from perfci.report.trend.timeline_data import timeline_file
from perfci.trend.change import Change, Trend
from perfci.trend.loaded import Distributions
from perfci.trend.series import SeriesKey


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
            key: {night.run: row for row, night in enumerate(timeline.nights)}
            for key, timeline in trend.timelines.items()
        },
    )
    yield from asset_files()
    for key, place in listed.places.items():
        yield timeline_file(trend.timelines[key], place, listed.labels[key], trend.releases)
    for benchmark in listed.benchmarks:
        yield from benchmark_files(benchmark, listed, attached)
        yield f"benchmarks/{benchmark.slug}.html", benchmark_page(benchmark, trend, listed)
    yield search_file(listed, standing)
    yield "index.html", overview_page(trend, sort_changes(trend), listed)


def _by_series(changes: tuple[Change, ...]) -> dict[SeriesKey, tuple[Change, ...]]:
    found: dict[SeriesKey, list[Change]] = {}
    for change in changes:
        found.setdefault(change.series, []).append(change)
    return {
        key: tuple(sorted(of_one, key=lambda change: change.after)) for key, of_one in found.items()
    }
