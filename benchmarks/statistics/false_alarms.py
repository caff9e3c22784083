"""Reports of identical cases: each `fail` is false, and what else is said of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import Model
from benchmarks.statistics.paths import CASES, PATHS, policy_with
from benchmarks.statistics.scoring import (
    Score,
    largest_error,
    markdown,
    percent,
    percent_with_interval,
    rng_of,
)
from benchmarks.statistics.thresholds import ALPHA, THRESHOLD

WEIGHTS = {"compare": 10, "check, 1 session, confirmed": 2, "check, 3 sessions, confirmed": 2}
"""The paths that users get by default are simulated so many times as often."""


def rows(model: Model, path: str, reports: int) -> list[dict[str, Any]]:
    """Reports of identical cases: each `fail` is false."""
    rng = rng_of("alarms", model.name, path)
    score = Score(model.name, path, float(np.expm1(model.offset)), THRESHOLD)
    policy = policy_with(THRESHOLD)
    for _ in range(reports * WEIGHTS.get(path, 1)):
        score.add(PATHS[path](model, rng, [0.0] * CASES, policy), ALPHA)
    return [{"part": "alarms", **score.plain()}]


def _grid(results: Sequence[dict[str, Any]], cell: Callable[[dict[str, Any]], str]) -> str:
    mine = [row for row in results if row["part"] == "alarms"]
    if not mine:
        return ""
    paths = [path for path in PATHS if any(row["path"] == path for row in mine)]
    cells = {(row["model"], row["path"]): cell(row) for row in mine}
    models = dict.fromkeys(row["model"] for row in mine)
    return markdown(
        ("model", *paths), [(model, *(cells[model, path] for path in paths)) for model in models]
    )


def table(results: Sequence[dict[str, Any]]) -> str:
    """Models whose cells are all alike (mostly: no `fail` at all) share a row."""
    mine = [
        row
        for row in results
        if row["part"] == "alarms" and float(str(row["change"])) < float(str(row["threshold"]))
    ]
    if not mine:
        return ""
    paths = [path for path in PATHS if any(row["path"] == path for row in mine)]
    cells: dict[object, dict[object, str]] = {}
    for row in mine:
        cell = percent_with_interval(row["failed"], row["reports"])
        cells.setdefault(row["model"], {})[row["path"]] = cell
    alike: dict[tuple[str, ...], list[str]] = {}
    for model, by_path in cells.items():
        alike.setdefault(tuple(by_path[path] for path in paths), []).append(str(model))
    lines = [("; ".join(models), *found) for found, models in alike.items()]
    return f"{markdown(('model', *paths), lines)}\n\n{_reports(mine)}"


def _reports(mine: Sequence[dict[str, Any]]) -> str:
    """Say how many reports a cell is of, from the counts themselves."""
    cells: dict[int, list[dict[str, Any]]] = {}
    for row in mine:
        cells.setdefault(int(str(row["reports"])), []).append(row)
    usual = max(cells, key=lambda count: len(cells[count]))
    every = {row["model"] for row in mine}
    said = [f"Reports a cell: {usual}"]
    for count in sorted(cells.keys() - {usual}):
        paths = dict.fromkeys(f"`{row['path']}`" for row in cells[count])
        models = dict.fromkeys(f"*{row['model']}*" for row in cells[count])
        whose = f" of {', '.join(models)}" if 2 * len(models) < len(every) else ""
        said.append(f"{count} for {', '.join(paths)}{whose}")
    return "; ".join(said) + "."


def significant_table(results: Sequence[dict[str, Any]]) -> str:
    made = _grid(results, lambda row: percent(row["alarmed"], row["reports"]))
    shares = [(row["alarmed"], row["reports"]) for row in results if row["part"] == "alarms"]
    return made and f"{made}\n\n{largest_error(shares)}"


def undecided_table(results: Sequence[dict[str, Any]]) -> str:
    return _grid(
        results,
        lambda row: (
            f"{percent(row['inconclusive'], row['reports'], 0)};"
            f" {row['rounds'] / row['comparisons']:.1f}"
        ),
    )


def unchanged_table(results: Sequence[dict[str, Any]]) -> str:
    return _grid(results, lambda row: percent(row["unchanged"], row["comparisons"]))


def coverage_table(results: Sequence[dict[str, Any]]) -> str:
    made = _grid(results, lambda row: percent(row["held"], row["intervals"]))
    shares = [(row["held"], row["intervals"]) for row in results if row["part"] == "alarms"]
    return made and f"{made}\n\n{largest_error(shares)}"


def new_modes_table(results: Sequence[dict[str, Any]]) -> str:
    """Return what `compare` says where some of head's processes are slower, and none of base's."""
    mine = [
        row
        for row in results
        if row["part"] == "alarms" and row["path"] == "compare" and row["change"]
    ]
    lines = [
        (
            row["model"],
            f"{100 * float(str(row['change'])):.1f}",
            percent(row["failed"], row["reports"]),
            percent(row["regressed"], row["comparisons"]),
            percent(row["unchanged"], row["comparisons"]),
            percent(row["unchanged_early"], row["comparisons"]),
            percent(row["held"], row["intervals"]),
            f"{row['rounds'] / row['comparisons']:.1f}",
        )
        for row in mine
    ]
    head = (
        "model",
        "mean change, %",
        "reports that fail, %",
        "cases `regressed`, %",
        "`unchanged`, %",
        "of these after five rounds, % of cases",
        "interval holds, %",
        "rounds",
    )
    return markdown(head, lines) if mine else ""
