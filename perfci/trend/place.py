"""A confidence set for the place of a step: the one that fits best need not be the true one."""

from __future__ import annotations

import math

from perfci.trend.noise import Prepared, inflation
from perfci.trend.significance import PRIOR, Split, Sums, split_gains

CRITICAL = -2.0 * math.log(1.0 - math.sqrt(0.95))
"""7.35: the 95th percentile of twice the log likelihood ratio of the best place to the true one."""


def place_interval(prepared: Prepared, sums: Sums, split: Split) -> tuple[int, int]:
    """Return the last point of the old level and the first of the new one, with 95 % confidence.

    Of an exact series these are the split's own.

    Notes
    -----
    All places whose likelihood is not far below the best one's, from the first to the last of
    them: Eo and Morley (2015, Quantitative Economics 6:463-497), after Siegmund (1988, Annals of
    Statistics 16:1355-1371), whose P(LR ≤ x) = (1 - exp(-x/2))². The variance is the long run's of
    AR(1). benchmarks/trend/places.py measures how often the true place is inside.
    """
    import numpy as np

    if prepared.exact:
        return split.place - 1, split.place
    gains = split_gains(sums.values, split.begin, split.end)
    likely = np.flatnonzero(
        gains[split.place - split.begin - 1] - gains <= CRITICAL * _variance(prepared, sums, split)
    )
    return split.begin + int(likely[0]), split.begin + int(likely[-1]) + 1


def _variance(prepared: Prepared, sums: Sums, split: Split) -> float:
    """Return the noise's long-run variance: the two stretches' own, drawn to the series'."""
    within = sums.spread(split.begin, split.place) + sums.spread(split.place, split.end)
    points = split.end - split.begin
    pooled = (PRIOR * prepared.sigma**2 + within) / (PRIOR + points - 2)
    return pooled * float(inflation(float(points), prepared.rho))
