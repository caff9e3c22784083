"""One slower case among twenty: how often it is seen, and how many rounds that takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import Model
from benchmarks.statistics.paths import PATHS, policy_with
from benchmarks.statistics.scoring import Score, largest_error, markdown, percent, rng_of
from benchmarks.statistics.thresholds import ALPHA, COMPARE

CELLS = ((0.02, 0.01), (0.05, 0.025), (0.10, 0.05), (0.02, 0.02), (0.02, 0.05))
"""(true change, threshold): twice the threshold, the threshold itself, well below it."""
SHOWN = ((0.02, 0.01), (0.05, 0.025))


def rows(model: Model, reports: int) -> list[dict[str, Any]]:
    """One slower case among twenty; the other tests are of identical sides."""
    rng = rng_of("power", model.name, COMPARE)
    cells = []
    for change, threshold in CELLS:
        seen = float(np.expm1(np.log1p(change) + model.offset))
        score = Score(model.name, COMPARE, seen, threshold)
        policy = policy_with(threshold)
        for _ in range(reports):
            score.add(PATHS[COMPARE](model, rng, [float(np.log1p(change))], policy), ALPHA)
        cells.append({"part": "power", **score.plain(), "change": change})
    return cells


def table(results: Sequence[dict[str, Any]]) -> str:
    """Return the cells in which the threshold doesn't settle the case at once."""
    mine = [
        row
        for row in results
        if row["part"] == "power" and (row["change"], row["threshold"]) in SHOWN
    ]
    if not mine:
        return ""
    cells = {
        (row["model"], row["change"], row["threshold"]): (
            f"{percent(row['regressed'], row['comparisons'])}"
            f"; {row['rounds'] / row['comparisons']:.1f}"
        )
        for row in mine
    }
    made = markdown(
        ("model", *(f"{change:.0%} at {least:.1%}" for change, least in SHOWN)),
        [
            (model, *(cells[model, change, least] for change, least in SHOWN))
            for model in dict.fromkeys(row["model"] for row in mine)
        ],
    )
    runs = sorted({int(str(row["comparisons"])) for row in mine})
    shares = [(row["regressed"], row["comparisons"]) for row in mine]
    said = " or ".join(map(str, runs))
    return f"{made}\n\n{said} runs a cell. {largest_error(shares)}"
