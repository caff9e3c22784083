"""What a test could have detected, and how many pairs a change needs to be detected."""

from __future__ import annotations

import math

from perfci.stats.student import t_quantile

POWER = 0.95
_LIMIT = 10_000


def detectable_difference(se: float, df: float, alpha: float, power: float = POWER) -> float:
    """Return the smallest true difference that is called significant in ``power`` of runs.

    Notes
    -----
    ``(t(1 - alpha/2; df) + t(power; df)) se`` (NIST/SEMATECH e-Handbook of Statistical
    Methods, 7.2.2.2, solved for the difference). The exact answer needs the noncentral t; with
    5 pairs at alpha 0.01 this one is a few per cent larger.
    """
    return (t_quantile(1.0 - alpha / 2.0, df) + t_quantile(power, df)) * se


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
        low, high = high, high * 2
        if high > _LIMIT:
            return None
    while low < high:
        middle = (low + high) // 2
        if _detectable(spread, middle, alpha, power) <= difference:
            high = middle
        else:
            low = middle + 1
    return high


def _detectable(spread: float, pairs: int, alpha: float, power: float) -> float:
    return detectable_difference(spread / math.sqrt(pairs), pairs - 1, alpha, power)
