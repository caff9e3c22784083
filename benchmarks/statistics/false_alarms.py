"""Reports of identical cases: each `fail` is false, and what else is said of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.statistics.noise import Model
from benchmarks.statistics.paths import CASES, PATHS, policy_with
from benchmarks.statistics.scoring import Score, rng_of
from benchmarks.statistics.thresholds import ALPHA, CHECK, COMPARE, THRESHOLD

WEIGHTS = {COMPARE: 10, "check, 1 session": 2, CHECK: 2}
"""The paths that users get by default are simulated so many times as often."""


def rows(model: Model, path: str, reports: int) -> list[dict[str, Any]]:
    """Reports of identical cases: each `fail` is false."""
    rng = rng_of("alarms", model.name, path)
    score = Score(model.name, path, float(np.expm1(model.offset)), THRESHOLD)
    policy = policy_with(THRESHOLD)
    for _ in range(reports * WEIGHTS.get(path, 1)):
        score.add(PATHS[path](model, rng, [0.0] * CASES, policy), ALPHA)
    return [{"part": "alarms", **score.plain()}]
