"""The tables that the raw counts make, as Markdown, each under its heading."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.statistics import modes_errors, percentiles, sessions, stopping_levels
from benchmarks.statistics.paths import PATHS
from benchmarks.statistics.scoring import markdown, percent, percent_with_interval

THRESHOLD = 0.05
POWER_CELLS: dict[str, tuple[tuple[float, float], ...]] = {
    "compare, adaptive": (
        (0.01, 0.005), (0.02, 0.01), (0.05, 0.025), (0.10, 0.05), (0.01, 0.01), (0.02, 0.02),
        (0.02, 0.05),
    ),
    "check, 3 sessions, confirmed": ((0.02, 0.01), (0.05, 0.025), (0.10, 0.05)),
}  # fmt: skip
"""(true change, threshold): twice the threshold, the threshold itself, well below it."""
POWER_FIGURES = "% significant; % regressed; rounds; by true change and threshold"


def tables(results: Sequence[dict[str, object]]) -> str:
    """Return every table that the results allow, each under its heading."""
    parts = (
        ("False `fail`, % of reports of 20 identical cases (95 % interval)", _alarm_table),
        ("Undecided reports (%) and rounds a case", _inconclusive_table),
        ("Coverage of the 95 % interval of the ratio, %", _coverage_table),
        ("Stopping: % of intervals that hold; rounds", stopping_levels.table),
        ("Coverage near the threshold of 5 %, `compare`, adaptive", _boundary_table),
        *(
            (
                f"{path}: one slower case among twenty ({POWER_FIGURES})",
                _power_table(path),
            )
            for path in POWER_CELLS
        ),
        ("The usual recipe: % of reports with an alarm", _usual_table),
        ("Two modes", modes_errors.table),
        ("Percentiles", percentiles.table),
        ("Sessions", sessions.table),
    )
    made = ((heading, table(results)) for heading, table in parts)
    return "\n\n".join(f"### {heading}\n\n{text}" for heading, text in made if text)


def _grid(results: Sequence[dict[str, object]], cell: Callable[[dict[str, object]], str]) -> str:
    mine = [row for row in results if row["part"] == "alarms"]
    if not mine:
        return ""
    paths = [path for path in PATHS if any(row["path"] == path for row in mine)]
    cells = {(row["model"], row["path"]): cell(row) for row in mine}
    models = dict.fromkeys(row["model"] for row in mine)
    return markdown(
        ("model", *paths), [(model, *(cells[model, path] for path in paths)) for model in models]
    )


def _alarm_table(results: Sequence[dict[str, object]]) -> str:
    return _grid(results, lambda row: percent_with_interval(row["failed"], row["reports"]))


def _inconclusive_table(results: Sequence[dict[str, object]]) -> str:
    return _grid(
        results,
        lambda row: (
            f"{percent(row['inconclusive'], row['reports'], 0)};"
            f" {row['rounds'] / row['comparisons']:.1f}"
        ),
    )


def _coverage_table(results: Sequence[dict[str, object]]) -> str:
    return _grid(results, lambda row: percent(row["held"], row["intervals"]))


def _boundary_table(results: Sequence[dict[str, object]]) -> str:
    mine = [row for row in results if row["part"] == "boundary"]
    if not mine:
        return ""
    cells = {
        (row["model"], row["change"]): (
            percent(row["held"], row["intervals"]),
            f"{row['rounds'] / row['comparisons']:.1f}",
            percent(row["regressed"], row["comparisons"]),
        )
        for row in mine
    }
    return markdown(
        (
            "model",
            *("4 % slower: interval holds, %", "rounds", "regressed, %"),
            *("5 % slower: interval holds, %", "rounds", "regressed, %"),
        ),
        [
            (model, *cells[model, 0.04], *cells[model, 0.05])
            for model in dict.fromkeys(row["model"] for row in mine)
        ],
    )


def _power_table(path: str) -> Callable[[Sequence[dict[str, object]]], str]:
    def table(results: Sequence[dict[str, object]]) -> str:
        mine = [row for row in results if row["part"] == "power" and row["path"] == path]
        if not mine:
            return ""
        cells = {
            (row["model"], row["change"], row["threshold"]): (
                f"{percent(row['significant'], row['comparisons'])}"
                f"; {percent(row['regressed'], row['comparisons'])}"
                f"; {row['rounds'] / row['comparisons']:.1f}"
            )
            for row in mine
        }
        return markdown(
            ("model", *(f"{change:.0%} at {least:.1%}" for change, least in POWER_CELLS[path])),
            [
                (model, *(cells[model, change, least] for change, least in POWER_CELLS[path]))
                for model in dict.fromkeys(row["model"] for row in mine)
            ],
        )

    return table


def _usual_table(results: Sequence[dict[str, object]]) -> str:
    mine = [row for row in results if row["part"] == "usual"]
    if not mine:
        return ""
    cells = {(row["model"], row["least"]): percent(row["failed"], row["reports"]) for row in mine}
    return markdown(
        ("model", "p < 0.05 and d > 0.2", "and slower by 5 %"),
        [(m, cells[m, 0.0], cells[m, THRESHOLD]) for m in dict.fromkeys(r["model"] for r in mine)],
    )
