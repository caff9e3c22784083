"""Quantiles of samples, and how many samples a quantile needs."""

from __future__ import annotations

import math
from collections.abc import Sequence


def quantile(values: Sequence[float], q: float) -> float:
    """Return the ``q`` quantile of ``values``, in any order. ValueError for none of them.

    Notes
    -----
    Linear interpolation between order statistics at ``(n - 1) q``: type 7 of Hyndman & Fan
    1996, The American Statistician 50:361-365, which numpy uses too.
    """
    if not values:
        raise ValueError("a quantile of no values")
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"{q} is no share between 0 and 1")
    ordered = sorted(values)
    position = (len(ordered) - 1) * q
    below = math.floor(position)
    share = position - below
    if share == 0.0:
        return ordered[below]
    return ordered[below] + share * (ordered[below + 1] - ordered[below])


def median(values: Sequence[float]) -> float:
    """Return the median of ``values``; ValueError for none of them."""
    return quantile(values, 0.5)


def samples_needed(q: float, confidence: float = 0.95) -> int:
    """Return how many samples the ``q`` quantile needs before it may be reported.

    Notes
    -----
    The largest of ``n`` samples lies above the true quantile with the chance ``1 - q^n``; until
    that is 95 % not even an upper bound of the quantile is known: ``n ≥ log 0.05 / log q``
    (Wilks 1941, Annals of Mathematical Statistics 12:91-96). That is 59 for p95 and 299 for
    p99. Assumes independent samples; bursts are somewhat correlated, so it is the least.
    The median and what lies below it need one: a slow benchmark may have time for one call
    only, and the spread that counts is the one between workers.
    """
    if not 0.0 <= q < 1.0:
        raise ValueError(f"{q} is no quantile that samples can reach")
    if q <= 0.5:
        return 1
    return math.ceil(math.log1p(-confidence) / math.log(q))
