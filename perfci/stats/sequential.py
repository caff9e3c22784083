"""The group-sequential bound: how sure each look has to be where a session looks often."""

from __future__ import annotations

import math
from functools import lru_cache

from perfci.stats.student import CONFIDENCE

_POINTS = 161
_TOLERANCE = 1e-4


@lru_cache(64)
def look_confidence(least: int, most: int) -> float:
    """Return the confidence of the interval at each look, for 95 % over all looks.

    There is a look after each of ``least`` to ``most`` pairs; with one look it is 95 %.

    Notes
    -----
    Pocock's constant ``c`` (Pocock 1977, Biometrika 64:191-199): ``P(|Z_n| < c at every look) =
    0.95`` for the standardised sums of n normal values, by the recursion of Armitage, McPherson &
    Rowe 1969 (Journal of the Royal Statistical Society A 132:235-244). Each look then has the
    two-sided level ``2 (1 - Φ(c))``, also where the spread is estimated (significance levels:
    Jennison & Turnbull 2000, Group Sequential Methods, 3.8). With 5 to 20 pairs that is 98.9 %.
    """
    if most <= least:
        return CONFIDENCE
    below, above = 1.9, 4.0
    while above - below > _TOLERANCE:
        middle = (below + above) / 2.0
        if _always_within(middle, least, most) < CONFIDENCE:
            below = middle
        else:
            above = middle
    return math.erf(above / math.sqrt(2.0))


def _always_within(bound: float, least: int, most: int) -> float:
    """Return the chance that the standardised sum stays within ``bound`` at every look."""
    import numpy as np

    points = np.linspace(-1.0, 1.0, _POINTS) * bound * math.sqrt(least)
    density = np.exp(-(points**2) / (2.0 * least)) / math.sqrt(2.0 * math.pi * least)
    weights = np.ones(_POINTS)
    weights[0] = weights[-1] = 0.5
    for count in range(least + 1, most + 1):
        after = np.linspace(-1.0, 1.0, _POINTS) * bound * math.sqrt(count)
        steps = np.exp(-((after[:, None] - points) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
        density = steps @ (density * weights) * (points[1] - points[0])
        points = after
    return float(np.sum(density * weights) * (points[1] - points[0]))
