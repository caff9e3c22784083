"""What a test could have detected, and how many pairs a change needs to be detected."""

from __future__ import annotations

import math
from functools import lru_cache

from perfci.stats.student import t_quantile

POWER = 0.95
_LIMIT = 10_000
_HUGE = 100.0


def detectable_difference(se: float, df: float, alpha: float, power: float = POWER) -> float:
    """Return the smallest true difference that is called significant in ``power`` of runs.

    Notes
    -----
    ``δ se`` with ``P(T(df, δ) > t(1 - alpha/2; df)) = power`` for the noncentral t (Johnson &
    Welch 1940, Biometrika 31:362-389); the other tail is left out, it holds less than 1e-6. The
    usual ``(t(1 - alpha/2; df) + t(power; df)) se`` was rejected: with 6 pairs at alpha 0.01
    it promises 95 % and keeps 92 %. Where the critical value is huge (one or two degrees of
    freedom, many comparisons) δ is too, and the normal part of T nothing beside it: then
    ``δ = critical √(χ²(power; df) / df)``, which the inversion takes milliseconds to find.
    """
    return _noncentrality(df, alpha, power) * se


@lru_cache(4096)
def _noncentrality(df: float, alpha: float, power: float) -> float:
    """Return δ: most rows of a report have the same degrees of freedom."""
    from scipy import special

    critical = t_quantile(1.0 - alpha / 2.0, df)
    if critical > _HUGE:
        return critical * math.sqrt(float(special.chdtri(df, 1.0 - power)) / df)
    return float(special.nctdtrinc(df, 1.0 - power, critical))


def pairs_needed(
    spread: float, difference: float, alpha: float, power: float = POWER
) -> int | None:
    """Return how many pairs detect ``difference``, or None for more than 10,000.

    Notes
    -----
    The least ``n`` with ``detectable_difference(spread / √n, n - 1) ≤ difference``; ``spread``
    is the standard deviation of the pairs' differences.
    """
    if difference <= 0.0:
        return None
    low, high = 2, 4
    while _detectable(spread, high, alpha, power) > difference:
        if high == _LIMIT:
            return None
        low, high = high, min(high * 2, _LIMIT)
    while low < high:
        middle = (low + high) // 2
        if _detectable(spread, middle, alpha, power) <= difference:
            high = middle
        else:
            low = middle + 1
    return high


def _detectable(spread: float, pairs: int, alpha: float, power: float) -> float:
    return detectable_difference(spread / math.sqrt(pairs), pairs - 1, alpha, power)
