"""One slower case among twenty: how often it is seen, and how many rounds that takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.statistics.noise import Model
from benchmarks.statistics.paths import PATHS, policy_with
from benchmarks.statistics.scoring import Score, rng_of
from benchmarks.statistics.thresholds import ALPHA, COMPARE

CELLS = ((0.02, 0.01), (0.05, 0.025), (0.10, 0.05), (0.02, 0.02), (0.02, 0.05))
"""(true change, threshold): twice the threshold, the threshold itself, well below it."""


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
