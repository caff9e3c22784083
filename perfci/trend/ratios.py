"""Differences of logarithms as the ratios that they are."""

from __future__ import annotations

import math


def ratio_of(difference: float) -> float:
    """Return ``exp(difference)``, never beyond what two values of a series can differ by.

    An interval can: that of a wild series may reach further than any float.
    """
    from perfci.stats.student import LARGEST

    most = 2.0 * math.log(LARGEST)
    return math.exp(min(max(difference, -most), most))
