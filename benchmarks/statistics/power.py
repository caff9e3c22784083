"""One slower case among twenty: how often it is seen, and how many rounds that takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.statistics.noise import Model
from benchmarks.statistics.paths import FAMILY, PATHS, policy_with
from benchmarks.statistics.scoring import Score, largest_error, markdown, percent, rng_of
from benchmarks.statistics.thresholds import ALPHA, THRESHOLD

CELLS: dict[str, tuple[tuple[float, float], ...]] = {
    "compare, adaptive": (
        (0.01, 0.005), (0.02, 0.01), (0.05, 0.025), (0.10, 0.05), (0.01, 0.01), (0.02, 0.02),
        (0.02, 0.05),
    ),
    "check, 3 sessions, confirmed": ((0.02, 0.01), (0.05, 0.025), (0.10, 0.05)),
}  # fmt: skip
"""(true change, threshold): twice the threshold, the threshold itself, well below it."""
PROMISED = "spread 0.7 %"
"""The model that the promise of 99 % is made for; its power is simulated four times as often."""
POOL_REPORTS = 15
"""Rows of the other cases are drawn from so many reports."""


def rows(model: Model, path: str, reports: int) -> list[dict[str, object]]:
    """One slower case among twenty; the others are drawn from reports of identical cases."""
    rng = rng_of("power", model.name, path)
    run = PATHS[path]
    pool = [
        row
        for _ in range(POOL_REPORTS)
        for row in run(model, rng, [0.0] * FAMILY, policy_with(THRESHOLD), ()).rows
    ]
    found = []
    for change, threshold in CELLS[path]:
        seen = float(np.expm1(np.log1p(change) + model.offset))
        score = Score(model.name, path, seen, threshold)
        policy = policy_with(threshold)
        for _ in range(reports * (4 if model.name == PROMISED else 1)):
            others = [pool[i] for i in rng.integers(0, len(pool), FAMILY - 1)]
            score.add(run(model, rng, [float(np.log1p(change))], policy, others), ALPHA)
        found.append({"part": "power", **score.plain(), "change": change})
    return found


def table(results: Sequence[dict[str, object]], path: str) -> str:
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
    made = markdown(
        ("model", *(f"{change:.0%} at {least:.1%}" for change, least in CELLS[path])),
        [
            (model, *(cells[model, change, least] for change, least in CELLS[path]))
            for model in dict.fromkeys(row["model"] for row in mine)
        ],
    )
    runs = sorted({int(str(row["comparisons"])) for row in mine})
    shares = [(row["significant"], row["comparisons"]) for row in mine]
    said = " or ".join(map(str, runs))
    return f"{made}\n\n{said} runs a cell. {largest_error(shares)}"
