"""The site's data files, as scripts: an index for each benchmark, and chunks for its charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfci.report.clean import clean_line
from perfci.report.drawing import literal, pack
from perfci.report.site import words
from perfci.report.site.catalogue import WORDS, Catalogue, ListedBenchmark, SeriesStanding, axes_of
from perfci.report.site.words import change_text, patterns, ratio_text, short, shown
from perfci.trend import Change, Series, SeriesKey, Timeline, dates_of

_DIGITS = 4
"""Significant digits of a latest value in the overview's search."""
_LONGEST_SUBJECT = 160
CHUNK = 32
"""Series in a chunk: what a screen or two shows, some 50 kB."""


def script(kind: str, name: str, payload: Any) -> bytes:
    """Return a script that hands ``payload`` to the page: ``perfciTrend(kind, name, payload)``.

    Untrusted text must be a value, in an array. As a key, ``__proto__`` would be no ordinary name.
    """
    return b"perfciTrend(%s,%s,%s);\n" % (literal(kind), literal(name), literal(payload))


def search_file(
    listed: Catalogue, standings: Mapping[SeriesKey, SeriesStanding]
) -> tuple[str, bytes]:
    """Return the search's data file.

    ``case`` is stored as steps from row to row, ``latest`` to four digits. ``moved`` has
    ``[row, standing, new, size]`` for the few series that moved. ``few`` has the rows of the series
    with too few runs, as steps: in a young history these may be all series.
    """
    cases: list[list[Any]] = []
    places: dict[str, int] = {}
    columns: dict[str, list[Any]] = {"case": [], "metric": [], "environment": [], "latest": []}
    metrics: dict[tuple[str, str, str], int] = {}
    moved: list[list[Any]] = []
    few: list[int] = []
    row = before = last_few = 0
    for number, benchmark in enumerate(listed.benchmarks):
        for series in benchmark.series:
            case = places.setdefault(series.key.case, len(cases))
            if case == len(cases):
                cases.append(_case(number, benchmark.name, series.key.case))
            metric = (series.key.metric, series.unit, series.direction)
            columns["case"].append(case - before)
            columns["metric"].append(metrics.setdefault(metric, len(metrics)))
            columns["environment"].append(listed.places[series.key.environment])
            columns["latest"].append(_latest(series))
            standing = standings.get(series.key)
            if standing is not None and standing.word == "too_few":
                few.append(row - last_few)
                last_few = row
            elif standing is not None:
                moved.append(_moved(row, standing, series))
            before, row = case, row + 1
    payload = {
        "benchmarks": [[shown(benchmark.name), benchmark.slug] for benchmark in listed.benchmarks],
        "cases": cases,
        "metrics": [[shown(name), clean_line(unit, 30), way] for name, unit, way in metrics],
        "environments": [[shown(key), label] for key, label in listed.labels.items()],
        "columns": columns,
        "moved": moved,
        "few": few,
    }
    return "data/search.js", script("search", "", payload)


def _case(number: int, benchmark: str, case: str) -> list[Any]:
    """Return ``[number, rest]`` for a case that begins with its benchmark's name.

    For any other name return ``[number, "", name]``.
    """
    whole, beginning = shown(case), shown(benchmark)
    if whole.startswith(beginning):
        return [number, whole[len(beginning) :]]
    return [number, "", whole]


def _moved(row: int, standing: SeriesStanding, series: Series) -> list[Any]:
    if standing.change is not None:
        size = change_text(standing.change, series.unit)
    else:
        size = ratio_text(standing.drift.ratio) if standing.drift else ""
    return [row, WORDS.index(standing.word), int(standing.new), size]


def _latest(series: Series) -> float | int | None:
    if not len(series.values):
        return None
    value = float(series.values[-1])
    if value == 0.0:
        return 0
    # rounded to significant digits, not to decimals: a small value would lose all of its digits
    rounded = float(f"{value:.{_DIGITS - 1}e}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def timeline_file(
    timeline: Timeline,
    place: int,
    label: str,
    releases: Mapping[str, tuple[str, ...]],
    forge: str = "",
) -> tuple[str, bytes]:
    """Return the data file of the ``place``-th environment. ``releases`` maps shas to names."""
    name = f"timeline-{place}"
    payload = _payload(timeline, label, releases) | {"forge": list(patterns(forge))}
    return f"data/{name}.js", script("timeline", str(place), payload)


def _payload(
    timeline: Timeline, label: str, releases: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    runs = timeline.runs
    runners = tuple(dict.fromkeys(run.runner for run in runs))
    places = {runner: place for place, runner in enumerate(runners)}
    return {
        "label": label,
        "key": shown(timeline.environment),
        "shas": [short(run.sha) for run in runs],
        "subjects": [clean_line(run.subject, _LONGEST_SUBJECT) for run in runs],
        "dates": [clean_line(moment[:10]) for moment in dates_of(timeline)],
        "runners": [shown(runner) for runner in runners],
        "runner": [places[run.runner] for run in runs],
        "releases": [[row, clean_line(name, 60)] for row, name in _released(timeline, releases)],
        "facts": [
            [clean_line(fact, 60), clean_line(value, 200)]
            for fact, value in sorted(timeline.facts.items())
        ],
    }


def _released(
    timeline: Timeline, releases: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[int, str]]:
    """Yield each row with the releases that no earlier row has.

    A release may have two commits: another machine may have shown it at another run, whose commit
    this timeline has, too.
    """
    seen: set[str] = set()
    for row, run in enumerate(timeline.runs):
        new = [name for name in releases.get(run.sha, ()) if name not in seen]
        seen.update(new)
        if new:
            yield row, ", ".join(new)


def benchmark_files(
    benchmark: ListedBenchmark,
    listed: Catalogue,
    changes: Mapping[SeriesKey, tuple[Change, ...]],
    standings: Mapping[SeriesKey, SeriesStanding],
) -> Iterator[tuple[str, bytes]]:
    """Yield the data files of a benchmark, each with its path in the site."""
    index = script("benchmark", benchmark.slug, _index(benchmark, listed, standings))
    yield f"data/{benchmark.slug}.js", index
    for number, start in enumerate(range(0, len(benchmark.series), CHUNK)):
        name = f"{benchmark.slug}.{number}"
        some = benchmark.series[start : start + CHUNK]
        chunk = [_entry(series, changes.get(series.key, ())) for series in some]
        yield f"data/{name}.js", script("chunk", name, chunk)


def _index(
    benchmark: ListedBenchmark, listed: Catalogue, standings: Mapping[SeriesKey, SeriesStanding]
) -> dict[str, Any]:
    cases = tuple(dict.fromkeys(series.key.case for series in benchmark.series))
    metrics = tuple(
        dict.fromkeys(
            (series.key.metric, series.unit, series.direction) for series in benchmark.series
        )
    )
    environments = tuple(dict.fromkeys(series.key.environment for series in benchmark.series))
    case_places = {case: place for place, case in enumerate(cases)}
    metric_places = {metric: place for place, metric in enumerate(metrics)}
    environment_places = {key: place for place, key in enumerate(environments)}
    return {
        "name": shown(benchmark.name),
        "chunk": CHUNK,
        "cases": [[shown(case), shown(axes_of(case))] for case in cases],
        "metrics": [
            [shown(metric), clean_line(unit, 30), direction] for metric, unit, direction in metrics
        ],
        "environments": [
            [shown(key), listed.labels[key], listed.places[key]] for key in environments
        ],
        "series": [
            [
                case_places[series.key.case],
                metric_places[series.key.metric, series.unit, series.direction],
                environment_places[series.key.environment],
                *_standing(standings.get(series.key)),
            ]
            for series in benchmark.series
        ],
    }


def _standing(standing: SeriesStanding | None) -> tuple[int, int]:
    return (WORDS.index(standing.word), int(standing.new)) if standing else (0, 0)


def _entry(series: Series, changes: Sequence[Change]) -> dict[str, Any]:
    packed = pack(series.values)
    return {
        "scale": packed.scale,
        "deltas": packed.deltas,
        "rows": _rows(series),
        "sources": [int(series.rows[index]) for index in series.source_changes],
        "changes": [_change(change, series) for change in changes],
    }


def _rows(series: Series) -> list[int]:
    """Return ``[first]`` if no run is missing, else the first row and the steps between rows."""
    rows = series.rows
    if not len(rows) or int(rows[-1]) - int(rows[0]) == len(rows) - 1:
        return [int(rows[0])] if len(rows) else []
    return pack(rows.astype("f8"), 1.0).deltas


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
        "commits": clean_line(words.range_text(change), 60),
        "facts": [clean_line(text, 300) for text in _facts(change)],
    }


def _facts(change: Change) -> Iterator[str]:
    yield words.day(change.at)
    if interval := words.interval_text(change.ratio_lo, change.ratio_hi):
        yield f"95 %: {interval}"
    yield words.surety_text(change.q)
    yield from words.facts(change)
    if change.note:
        yield f"“{clean_line(change.note, 200)}”"
    if change.id:
        yield f"id {clean_line(change.id, 100)}"
