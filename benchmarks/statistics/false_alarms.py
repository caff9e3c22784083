"""Reports of identical cases: each `fail` is false, and what else is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import Model
from benchmarks.statistics.paths import CASES, PATHS, policy_with
from benchmarks.statistics.scoring import Score, markdown, percent, percent_with_interval, rng_of
from benchmarks.statistics.thresholds import ALPHA, CHECK, COMPARE, THRESHOLD

WEIGHTS = {COMPARE: 10, "check, 1 session": 2, CHECK: 2}
"""The paths that users get by default are simulated so many times as often."""
HEADINGS = (
    "model",
    "fail, %",
    "significant, %",
    "intervals hold, %",
    "`unchanged`, %",
    "rounds",
)


def rows(model: Model, path: str, reports: int) -> list[dict[str, Any]]:
    """Reports of identical cases: each `fail` is false."""
    rng = rng_of("alarms", model.name, path)
    score = Score(model.name, path, float(np.expm1(model.offset)), THRESHOLD)
    policy = policy_with(THRESHOLD)
    for _ in range(reports * WEIGHTS.get(path, 1)):
        score.add(PATHS[path](model, rng, [0.0] * CASES, policy), ALPHA)
    return [{"part": "alarms", **score.plain()}]


def table(results: Sequence[dict[str, Any]]) -> str:
    lines = [
        (
            row["model"],
            percent_with_interval(row["failed"], row["reports"]),
            percent(row["alarmed"], row["reports"]),
            percent(row["held"], row["intervals"]),
            percent(row["unchanged"], row["comparisons"]),
            f"{row['rounds'] / row['comparisons']:.1f}",
        )
        for row in results
        if row["part"] == "alarms" and row["path"] == COMPARE
    ]
    return markdown(HEADINGS, lines) if lines else ""
