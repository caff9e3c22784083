"""Data as scripts: pages opened from disk may load a script, but may not fetch a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from perfci.render.clean import clean_line
from perfci.render.site.catalogue import WORDS, Catalogue, Standing, shown
from perfci.render.site.forge import patterns
from perfci.render.site.words import change_text, ratio_text, short
from perfci.trend.timeline.series import Series, SeriesKey, Timeline, dates_of

_ENTITIES = {
    b"<": rb"\u003c",  # no </script> and no <!-- wherever the text may be pasted
    b">": rb"\u003e",
    b"&": rb"\u0026",
    "\u2028".encode(): rb"\u2028",
    "\u2029".encode(): rb"\u2029",
}
"""These occur in JSON only inside strings, so that bytes can be replaced."""


def script(kind: str, name: str, payload: Any) -> bytes:
    """Return a script that hands ``payload`` to the page: ``perfciTrend(kind, name, payload)``.

    A stranger's text belongs in arrays, as a value: as a key, ``__proto__`` would be no name.
    """
    return b"perfciTrend(%s,%s,%s);\n" % (literal(kind), literal(name), literal(payload))


def literal(value: Any) -> bytes:
    """Return ``value`` as JSON that may stand in a script element of a page."""
    encoded = msgspec.json.encode(value, enc_hook=float)  # numpy's numbers are not Python's
    for character, spelled in _ENTITIES.items():
        encoded = encoded.replace(character, spelled)
    return encoded


# What the overview searches in: every series in a few bytes, column by column.

_DIGITS = 4


def search_file(listed: Catalogue, standings: Mapping[SeriesKey, Standing]) -> tuple[str, bytes]:
    """Return the search's data file.

    ``case`` is stored as steps from row to row, ``latest`` to four digits; ``moved`` holds
    ``[row, standing, new, size]`` of those few that moved, and ``few`` the rows of those with too
    few runs, as steps, because in a young history these are all.
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
        "benchmarks": [[shown(one.name), one.slug] for one in listed.benchmarks],
        "cases": cases,
        "metrics": [[shown(name), clean_line(unit, 30), way] for name, unit, way in metrics],
        "environments": [[shown(key), label] for key, label in listed.labels.items()],
        "columns": columns,
        "moved": moved,
        "few": few,
    }
    return "data/search.js", script("search", "", payload)


def _case(number: int, benchmark: str, case: str) -> list[Any]:
    """Return the benchmark's place and what follows its name; all of a name that does not."""
    whole, beginning = shown(case), shown(benchmark)
    if whole.startswith(beginning):
        return [number, whole[len(beginning) :]]
    return [number, "", whole]


def _moved(row: int, standing: Standing, series: Series) -> list[Any]:
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
    # `1.234e-05` and not `0.00001234`, whose digits JSON would spell out
    rounded = float(f"{value:.{_DIGITS - 1}e}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


# One environment's runs, shared by all charts of that environment.

_LONGEST_SUBJECT = 160


def timeline_file(
    timeline: Timeline,
    place: int,
    label: str,
    releases: Mapping[str, tuple[str, ...]],
    forge: str = "",
) -> tuple[str, bytes]:
    """Return the data file of the ``place``-th environment; ``releases`` maps shas to names."""
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
        "measured": [clean_line(run.measured_at[:16]) for run in runs],
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

    Another machine may have had a release on another run, whose commit is here, too.
    """
    seen: set[str] = set()
    for row, run in enumerate(timeline.runs):
        new = [name for name in releases.get(run.sha, ()) if name not in seen]
        seen.update(new)
        if new:
            yield row, ", ".join(new)
