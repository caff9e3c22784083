"""Two modes: whether values fall into two groups that lie far apart, and where they lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from perfci.stats.student import mean, no_evidence

LEAST_VALUES = 5
LEAST_SHARE = 0.15
"""A smaller group is a tail, not a mode: t with 2 degrees of freedom makes one in any sample."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Two modes: their centres on the scale of the values, and the share in the upper one."""

    low: float
    high: float
    share_high: float


def two_modes(values: Sequence[float], *, least_gap: float = 0.01, fewest: int = 2) -> Modes | None:
    """Return the two modes of positive ``values``, in any order, or None where one is enough.

    ``least_gap`` is the share by which the modes have to differ to matter; ``fewest`` the
    number of values that make a mode (1 lets a single value be one).

    Notes
    -----
    The logarithms are split where the sum of squares within both groups is least; that is
    called two modes when the distance of the groups' means, in pooled standard deviations
    within groups, exceeds ``3.5 + 20 / (n - 3)``, and no two neighbours lie farther apart than
    at the split (a skewed sample has its widest steps in its tail). The statistic is that of
    Engelman & Hartigan 1969 (Percentage points of a test for clusters, Journal of the American
    Statistical Association 64:1647-1648); the bound was fitted to its simulated 99 % points for
    n of 5 to 40. Error rates: docs/results/two-modes.md. Fewer than five values have no modes.
    """
    count = len(values)
    if count < LEAST_VALUES or no_evidence(values) or min(values) <= 0.0:
        return None
    logs = sorted(math.log(value) for value in values)
    least = fewest if fewest < 2 else max(fewest, math.ceil(LEAST_SHARE * count))
    if 2 * least > count:
        return None
    within, split = min(
        (_squares(logs[:index]) + _squares(logs[index:]), index)
        for index in range(least, count - least + 1)
    )
    low, high = mean(logs[:split]), mean(logs[split:])
    pooled = math.sqrt(within / (count - 2))
    if high - low < math.log1p(least_gap) or high - low <= separation_needed(count) * pooled:
        return None
    steps = [after - before for before, after in pairwise(logs)]
    if steps[split - 1] < max(steps):
        return None
    return Modes(math.exp(low), math.exp(high), (count - split) / count)


def separation_needed(count: int) -> float:
    """Return how many standard deviations must lie between the modes of ``count`` values."""
    return 3.5 + 20.0 / (count - 3)


def _squares(values: Sequence[float]) -> float:
    center = mean(values)
    return math.fsum((value - center) ** 2 for value in values)
