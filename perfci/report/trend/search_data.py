"""What the overview searches in: every series in a few bytes, column by column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfci.report.clean import clean_line
from perfci.report.trend.catalogue import Catalogue, shown
from perfci.report.trend.script import script
from perfci.report.trend.standing import WORDS, Standing
from perfci.report.trend.words import change_text, ratio_text
from perfci.trend.series import Series, SeriesKey

_DIGITS = 4


def search_file(listed: Catalogue, standings: Mapping[SeriesKey, Standing]) -> tuple[str, bytes]:
    """Return the search's data file.

    ``case`` is told as steps from row to row, ``latest`` to four digits; ``moved`` holds
    ``[row, standing, new, size]`` of those few that moved, and ``few`` the rows of those with too
    few nights, as steps, because in a young history these are all.
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
