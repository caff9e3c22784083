"""Error rates of many comparisons (Holm) and of many looks (Pocock)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from perfci.stats.t_tests import CONFIDENCE

_POINTS = 161
_TOLERANCE = 1e-4


def holm(p_values: Sequence[float], family: int = 0) -> tuple[float, ...]:
    """Return each p adjusted for the number of tests, in the order given.

    ``family`` is the number of tests where not every p is known. Unknown ones count as no smaller.

    Notes
    -----
    With p sorted, ``max over j ≤ i of min(1, (m - j + 1) p_j)`` (Holm 1979, Scandinavian
    Journal of Statistics 6:65-70). Holds the chance of any false alarm at alpha whatever the
    dependence between the tests, which latency and throughput of one case need.
    """
    count = max(len(p_values), family)
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def benjamini_hochberg(p_values: Sequence[float], tests: int) -> tuple[float, ...]:
    """Return the q of each p, in the order given, where ``tests`` were made in all.

    Tests whose p is not among ``p_values`` count as not significant.

    Notes
    -----
    With p sorted, ``min over j ≥ i of min(1, p_j tests / j)`` (Benjamini and Hochberg 1995,
    Journal of the Royal Statistical Society B 57:289-300). Naming those with q ≤ 0.05 keeps the
    expected share of false ones among them at 5 %, for independent tests and for positively
    dependent ones (Benjamini and Yekutieli 2001, Annals of Statistics 29:1165-1188), as metrics of
    one run on one machine are. Their correction for arbitrary dependence was not taken: it
    divides by 10 at 16,000 series, and shared machine noise makes series move together.
    """
    count = max(tests, len(p_values))
    q_values = [1.0] * len(p_values)
    smallest = 1.0
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    for rank in range(len(order), 0, -1):
        index = order[rank - 1]
        smallest = min(smallest, p_values[index] * count / rank)
        q_values[index] = smallest
    return tuple(q_values)


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
