"""Bounds of a spread, its modes, and the changes that can be detected in it."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from perfci.stats.t_tests import CONFIDENCE, mean, no_evidence, t_quantile

_FEWEST_VALUES = 5
"""Fewer values have no modes."""
_LEAST_GAP = math.log1p(0.01)
POWER = 0.95
"""Chance, by default, that a test calls the difference significant that it can detect."""
_MOST_PAIRS = 10_000
"""No session measures more pairs. A change that needs more is out of reach."""
_HUGE_CRITICAL = 100.0
"""Critical value from which the inversion of the noncentral t is slow and its normal part small."""


def upper_bound(spread: float, df: int, confidence: float = CONFIDENCE) -> float:
    """Return the upper bound of the true standard deviation, of which a sample had ``spread``.

    Notes
    -----
    ``s √(df / χ²(1 - confidence; df))`` (Snedecor & Cochran 1989, Statistical Methods, 5.11).
    Assumes about normal values; with heavy tails the bound is too low.
    """
    from scipy import special

    return spread * math.sqrt(df / float(special.chdtri(df, confidence)))


@dataclass(frozen=True, slots=True)
class Modes:
    """Two modes: their centres on the scale of the values, and the numbers of values in each."""

    low: float
    high: float
    low_count: int
    high_count: int


def two_modes(values: Sequence[float]) -> Modes | None:
    """Return the two modes of positive ``values``, in any order, or None if one is enough.

    A single value may be a mode, so heavy tails show two in up to 16 % of samples. Modes less than
    1 % apart don't matter.

    Notes
    -----
    The logarithms are split where the sum of squares within both groups is least. The groups are
    two modes if the distance of their means, in pooled standard deviations within groups, exceeds
    ``3.5 + 20 / (n - 3)``, and if no two neighbours lie farther apart than at the split (a skewed
    sample has its widest steps in its tail). The statistic is that of
    Engelman & Hartigan 1969 (Percentage points of a test for clusters, Journal of the American
    Statistical Association 64:1647-1648); the bound was fitted to its simulated 99 % points for
    n of 5 to 40. Error rates: docs/results/error-rates.md. Fewer than five values have no modes.
    """
    count = len(values)
    if count < _FEWEST_VALUES or no_evidence(values) or min(values) <= 0.0:
        return None
    logs = sorted(math.log(value) for value in values)
    within, split = min(
        (_squares(logs[:index]) + _squares(logs[index:]), index) for index in range(1, count)
    )
    low, high = mean(logs[:split]), mean(logs[split:])
    pooled = math.sqrt(within / (count - 2))
    if high - low < _LEAST_GAP or high - low <= (3.5 + 20.0 / (count - 3)) * pooled:
        return None
    steps = [after - before for before, after in pairwise(logs)]
    if steps[split - 1] < max(steps):
        return None
    return Modes(math.exp(low), math.exp(high), split, count - split)


def _squares(values: Sequence[float]) -> float:
    center = mean(values)
    return math.fsum((value - center) ** 2 for value in values)


def detectable_difference(se: float, df: float, alpha: float, power: float = POWER) -> float:
    """Return the smallest true difference that is called significant in ``power`` of runs.

    Notes
    -----
    ``δ se`` with ``P(T(df, δ) > t(1 - alpha/2; df)) = power`` for the noncentral t (Johnson &
    Welch 1940, Biometrika 31:362-389). The other tail holds less than 1e-6 and is left out. The
    usual ``(t(1 - alpha/2; df) + t(power; df)) se`` was rejected: with 6 pairs at alpha 0.01
    it promises 95 % and keeps 92 %. If the critical value is huge (one or two degrees of
    freedom, many comparisons), so is δ, and the normal part of T is negligible. Then
    ``δ = critical √(χ²(power; df) / df)``, which the inversion takes milliseconds to find.
    """
    return _noncentrality(df, alpha, power) * se


@lru_cache(4096)
def _noncentrality(df: float, alpha: float, power: float) -> float:
    """Return δ. Cached, because most rows of a report share ``df`` and ``alpha``."""
    from scipy import special

    critical = t_quantile(1.0 - alpha / 2.0, df)
    if critical > _HUGE_CRITICAL:
        return critical * math.sqrt(float(special.chdtri(df, 1.0 - power)) / df)
    return float(special.nctdtrinc(df, 1.0 - power, critical))


def pairs_needed(spread: float, difference: float, alpha: float) -> int | None:
    """Return how many pairs detect ``difference``, or None for more than 10,000.

    Notes
    -----
    The least ``n`` with ``detectable_difference(spread / √n, n - 1) ≤ difference``; ``spread``
    is the standard deviation of the pairs' differences.
    """
    counts = range(2, _MOST_PAIRS + 1)

    def detect(pairs: int) -> bool:
        return detectable_difference(spread / math.sqrt(pairs), pairs - 1, alpha) <= difference

    index = bisect_left(counts, True, key=detect)
    return counts[index] if index < len(counts) else None
