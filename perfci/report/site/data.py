"""The site's data files, as scripts: an index for each benchmark, and chunks for its charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from perfci.report.clean import clean_line
from perfci.report.drawing import literal
from perfci.report.site import words
from perfci.report.site.catalogue import Catalogue, ListedBenchmark, SeriesStanding, slug
from perfci.report.site.words import change_text, patterns, short, shown
from perfci.trend import Change, Series, SeriesKey, Timeline, benchmark_of
from perfci.units import format_change

_LONGEST_SUBJECT = 160
CHUNK = 32
"""Series in a chunk: what a screen or two shows, some 50 kB."""


def script(kind: str, name: str, payload: Any) -> bytes:
    """Return a script that hands ``payload`` to the page: ``perfciTrend(kind, name, payload)``.

    Untrusted text must be a value, in an array. As a key, ``__proto__`` would be no ordinary name.
    """
    return b"perfciTrend(%s,%s,%s);\n" % (literal(kind), literal(name), literal(payload))


def listing(
    series: Iterable[Series], listed: Catalogue, standings: Mapping[SeriesKey, SeriesStanding]
) -> dict[str, Any]:
    """Return the names of ``series``, each once, and a row for each of them.

    A row has the indices of its case, metric and environment, and its latest value. If it isn't
    steady, its standing, whether that is new, and its size follow.
    """
    slugs: dict[str, int] = {}
    cases: dict[str, int] = {}
    metrics: dict[tuple[str, str, str], int] = {}
    environments: dict[str, int] = {}
    rows = []
    for each in series:
        key, standing = each.key, standings.get(each.key)
        slugs.setdefault(benchmark_of(key.case), len(slugs))
        latest = float(f"{each.values[-1]:.4g}") if len(each.values) else None
        rows.append(
            [
                cases.setdefault(key.case, len(cases)),
                metrics.setdefault((key.metric, each.unit, each.direction), len(metrics)),
                environments.setdefault(key.environment, len(environments)),
                latest,
                *([standing.word, int(standing.new), _size(standing, each)] if standing else []),
            ]
        )
    return {
        "slugs": [slug(benchmark) for benchmark in slugs],
        "cases": [[slugs[benchmark_of(case)], shown(case)] for case in cases],
        "metrics": [[shown(name), clean_line(unit, 30), way] for name, unit, way in metrics],
        "environments": [
            [shown(key), listed.labels[key], listed.indices[key]] for key in environments
        ],
        "series": rows,
    }


def _size(standing: SeriesStanding, series: Series) -> str:
    if standing.change is not None:
        return change_text(standing.change, series.unit)
    return format_change(standing.drift.ratio) if standing.drift else ""


def search_file(
    listed: Catalogue, standings: Mapping[SeriesKey, SeriesStanding]
) -> tuple[str, bytes]:
    """Return the search's data file."""
    every = (series for benchmark in listed.benchmarks for series in benchmark.series)
    return "data/search.js", script("search", "", listing(every, listed, standings))


def timeline_file(
    timeline: Timeline,
    index: int,
    label: str,
    releases: Mapping[str, tuple[str, ...]],
    forge: str = "",
) -> tuple[str, bytes]:
    """Return the data file of the ``index``-th environment. ``releases`` maps shas to names."""
    runs = timeline.runs
    runners = {runner: at for at, runner in enumerate(dict.fromkeys(run.runner for run in runs))}
    payload = {
        "label": label,
        "key": shown(timeline.environment),
        "shas": [short(run.sha) for run in runs],
        "subjects": [clean_line(run.subject, _LONGEST_SUBJECT) for run in runs],
        "dates": [clean_line(moment[:10]) for moment in timeline.dates],
        "runners": [shown(runner) for runner in runners],
        "runner": [runners[run.runner] for run in runs],
        "releases": [
            [row, clean_line(", ".join(releases[run.sha]), 60)]
            for row, run in enumerate(runs)
            if run.sha in releases and (not row or runs[row - 1].sha != run.sha)
        ],
        "facts": [
            [clean_line(fact, 60), clean_line(value, 200)]
            for fact, value in sorted(timeline.facts.items())
        ],
        "forge": list(patterns(forge)),
    }
    return f"data/timeline-{index}.js", script("timeline", str(index), payload)


def benchmark_files(
    benchmark: ListedBenchmark,
    listed: Catalogue,
    changes: Mapping[SeriesKey, Sequence[Change]],
    standings: Mapping[SeriesKey, SeriesStanding],
) -> Iterator[tuple[str, bytes]]:
    """Yield the data files of a benchmark, each with its path in the site."""
    index = {"chunk": CHUNK, **listing(benchmark.series, listed, standings)}
    yield f"data/{benchmark.slug}.js", script("benchmark", benchmark.slug, index)
    for number, start in enumerate(range(0, len(benchmark.series), CHUNK)):
        name = f"{benchmark.slug}.{number}"
        some = benchmark.series[start : start + CHUNK]
        chunk = [_entry(series, changes.get(series.key, ())) for series in some]
        yield f"data/{name}.js", script("chunk", name, chunk)


def _entry(series: Series, changes: Sequence[Change]) -> dict[str, Any]:
    """Return a series to draw. A missing ``rows`` means that no run is missing."""
    rows, values = series.rows.tolist(), series.values.tolist()
    return {
        # whole numbers to the last digit: a count may move by one
        "values": [each if each.is_integer() else float(f"{each:.5g}") for each in values],
        "rows": rows if rows != list(range(len(rows))) else None,
        "sources": [rows[index] for index in series.source_changes],
        "changes": [_change(change, series) for change in changes],
    }


def _change(change: Change, series: Series) -> dict[str, Any]:
    """Return where to draw a change, and all words about it: the scripts compose none."""
    return {
        "before": int(series.rows[change.before]),
        "after": int(series.rows[change.after]),
        "within": [int(series.rows[index]) for index in change.within],
        "worse": change.worse,
        "rises": words.rises(change),
        "status": change.status,
        "size": clean_line(words.change_text(change, series.unit), 60),
        "commits": clean_line(words.range_text(change.commits), 60),
        "facts": [clean_line(text, 300) for text in _facts(change)],
    }


def _facts(change: Change) -> Iterator[str]:
    yield words.day(change.at)
    if interval := words.interval_text(change):
        yield f"95 %: {interval}"
    yield words.surety_text(change.q)
    yield from words.facts(change)
    if change.note:
        yield f"“{clean_line(change.note, 200)}”"
    if change.id:
        yield f"id {clean_line(change.id, 100)}"
