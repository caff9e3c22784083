"""The usual recipe, for reference: Welch's t on the raw iterations of one process a side."""

from __future__ import annotations

import numpy as np
from scipy import special

from benchmarks.statistics.noise import Array, Model, Rng
from benchmarks.statistics.paths import FAMILY

ITERATIONS = 100
WITHIN = 0.02
"""The spread of iterations within a process; they are independent here, which flatters it."""


def alarms(model: Model, rng: Rng, least_change: float) -> Array:
    """Return which of a report's identical cases it calls slower: p < 0.05 and abs(d) > 0.2."""
    base, head = model.together(rng, FAMILY, 1)
    sides = [values + rng.normal(0.0, WITHIN, (FAMILY, ITERATIONS)) for values in (base, head)]
    centers = [np.mean(side, axis=1) for side in sides]
    spreads = [np.var(side, axis=1, ddof=1) for side in sides]
    pooled = np.sqrt((spreads[0] + spreads[1]) / 2.0)
    difference = centers[1] - centers[0]
    parts = [spread / ITERATIONS for spread in spreads]
    df = (parts[0] + parts[1]) ** 2 / sum(part**2 / (ITERATIONS - 1) for part in parts)
    p = 2.0 * special.stdtr(df, -np.abs(difference) / np.sqrt(parts[0] + parts[1]))
    found = (p < 0.05) & (np.abs(difference / pooled) > 0.2)
    return found & (difference > np.log1p(least_change))
