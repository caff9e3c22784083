"""One benchmark's data files: an index that its page loads, and chunks that its charts load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.render.clean import clean_line
from perfci.render.site import words
from perfci.render.site.catalogue import WORDS, Benchmark, Catalogue, Standing, axes_of, shown
from perfci.render.site.data import script
from perfci.trend.change import Change
from perfci.trend.timeline.series import Distributions, Series, SeriesKey

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Numbers as small whole ones: differences of values in steps of one power of ten.

_DIGITS = 5
"""A value is right to 1/100,000 of the typical one: no chart shows less."""
_LARGEST = 2.0**52
"""A browser's numbers count every whole number up to here."""
_LEAST_SCALE = 1e-300


@dataclass(frozen=True, slots=True)
class Packed:
    """``value[i] = scale * (deltas[0] + … + deltas[i])``."""

    scale: float
    deltas: list[int]


def pack(values: NDArray[Any], scale: float | None = None) -> Packed:
    """Pack finite ``values`` (n,), by ``scale`` or by one that suits them."""
    import numpy as np

    if not len(values):
        return Packed(1.0, [])
    if scale is None:
        scale = scale_of(values)
    whole = np.rint(values / scale).astype(np.int64)
    whole[1:] -= whole[:-1].copy()
    return Packed(scale, whole.tolist())


def scale_of(values: NDArray[Any]) -> float:
    """Return the step for ``values``: 1 where all are whole, else by the typical value's digits."""
    import numpy as np

    sizes = np.abs(values)
    largest = float(sizes.max())
    if largest < _LARGEST and bool((values == np.rint(values)).all()):
        return 1.0
    middle = len(sizes) // 2  # np.median takes four times as long for the same
    ordered = np.partition(sizes / 4.0, (max(0, middle - 1), middle))  # a sum of two may be none
    lower = middle if len(sizes) % 2 else middle - 1
    typical = 2.0 * float(ordered[lower] + ordered[middle]) or largest
    digits = 10.0 ** max(math.floor(math.log10(typical)) - _DIGITS, -300)
    return max(digits, largest / _LARGEST, _LEAST_SCALE)


CHUNK = 32
"""Series in a chunk: what a screen or two shows, some 50 kB."""


@dataclass(frozen=True, slots=True)
class Attached:
    """What belongs to a series beside its values, all by the series' key."""

    changes: Mapping[SeriesKey, tuple[Change, ...]]
    standings: Mapping[SeriesKey, Standing]
    distributions: Distributions
    rows: Mapping[str, Mapping[str, int]]
    """By environment: the row of each run."""


def benchmark_files(
    benchmark: Benchmark, listed: Catalogue, attached: Attached
) -> Iterator[tuple[str, bytes]]:
    """Yield the benchmark's data files, each with its path in the site."""
    index = script("benchmark", benchmark.slug, _index(benchmark, listed, attached))
    yield f"data/{benchmark.slug}.js", index
    for number, start in enumerate(range(0, len(benchmark.series), CHUNK)):
        name = f"{benchmark.slug}.{number}"
        chunk = [_entry(one, attached) for one in benchmark.series[start : start + CHUNK]]
        yield f"data/{name}.js", script("chunk", name, chunk)


def _index(benchmark: Benchmark, listed: Catalogue, attached: Attached) -> dict[str, Any]:
    cases = tuple(dict.fromkeys(one.key.case for one in benchmark.series))
    metrics = tuple(
        dict.fromkeys((one.key.metric, one.unit, one.direction) for one in benchmark.series)
    )
    environments = tuple(dict.fromkeys(one.key.environment for one in benchmark.series))
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
                case_places[one.key.case],
                metric_places[one.key.metric, one.unit, one.direction],
                environment_places[one.key.environment],
                *_standing(attached.standings.get(one.key)),
            ]
            for one in benchmark.series
        ],
    }


def _standing(standing: Standing | None) -> tuple[int, int]:
    return (WORDS.index(standing.word), int(standing.new)) if standing else (0, 0)


def _entry(series: Series, attached: Attached) -> dict[str, Any]:
    packed = pack(series.values)
    return {
        "scale": packed.scale,
        "deltas": packed.deltas,
        "rows": _rows(series),
        "sources": [int(series.rows[index]) for index in series.source_changes],
        "changes": [_change(change, series) for change in attached.changes.get(series.key, ())],
        "workers": _workers(series, attached),
    }


def _rows(series: Series) -> list[int]:
    """Return ``[first]`` where no run is missing, else the first row and the steps from it."""
    rows = series.rows
    if not len(rows) or int(rows[-1]) - int(rows[0]) == len(rows) - 1:
        return [int(rows[0])] if len(rows) else []
    return pack(rows.astype("f8"), 1.0).deltas


def _change(change: Change, series: Series) -> dict[str, Any]:
    """Return where it is drawn, and what is said of it: the page composes no words."""
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


def _workers(series: Series, attached: Attached) -> list[Any]:
    """Return ``[scale, [row, …], [how many, …], deltas]``: each run's values sorted, in a row."""
    import numpy as np

    known = attached.rows.get(series.key.environment, {})
    runs = sorted(
        (known[run], sorted(values))
        for run, values in attached.distributions.get(series.key, {}).items()
        if run in known and values
    )
    if not runs:
        return []
    packed = pack(np.array([value for _, values in runs for value in values], dtype="f8"))
    counts = [len(values) for _, values in runs]
    return [packed.scale, [row for row, _ in runs], counts, packed.deltas]
