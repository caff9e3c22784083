"""One slower case among twenty: how often it is seen, and how many rounds that takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.statistics.noise import Model
from benchmarks.statistics.paths import FAMILY, PATHS, policy_with
from benchmarks.statistics.scoring import Score, largest_error, markdown, percent, rng_of
from benchmarks.statistics.thresholds import ALPHA, THRESHOLD

TWICE = ((0.01, 0.005), (0.02, 0.01), (0.05, 0.025), (0.10, 0.05))
CELLS: dict[str, tuple[tuple[float, float], ...]] = dict.fromkeys(PATHS, TWICE) | {
    "compare, adaptive": (*TWICE, (0.01, 0.01), (0.02, 0.02), (0.02, 0.05)),
    "check, 3 sessions, confirmed": (*TWICE[1:], TWICE[0]),
}
"""(true change, threshold): twice the threshold, the threshold itself, well below it."""
PROMISED = "spread 0.7 %"
"""The model that the promise of 99 % is made for; its power is simulated four times as often."""
NO_SPREAD = frozenset({"zero variance"})
"""Values without any spread are no evidence, whatever the change."""
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


def by_path(results: Sequence[dict[str, object]]) -> str:
    """Every path in a line: what the models make of the same change."""
    mine = [row for row in results if row["part"] == "power" and row["model"] not in NO_SPREAD]
    if not mine:
        return ""
    found: dict[tuple[str, float], list[float]] = {}
    for row in mine:
        if (row["change"], row["threshold"]) in TWICE:
            share = 100.0 * float(str(row["regressed"])) / float(str(row["comparisons"]))
            found.setdefault((str(row["path"]), float(str(row["change"]))), []).append(share)
    return markdown(
        ("path", *(f"{change:.0%} at {least:.1%}" for change, least in TWICE)),
        [
            (path, *(_middle_and_ends(found[path, change]) for change, _ in TWICE))
            for path in PATHS
            if all((path, change) in found for change, _ in TWICE)
        ],
    )


def _middle_and_ends(shares: Sequence[float]) -> str:
    return f"{np.median(shares):.0f} ({min(shares):.0f}–{max(shares):.0f})"


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
