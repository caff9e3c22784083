"""Warming up: until the worker's own latencies stop falling."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Callable

BLOCK_S = 0.02
_STEADY_BLOCKS = 3
_FALLING = 0.99
"""A block whose median is under this share of the best before is still falling."""


def warm_up(burst: Callable[[array[int], float], int], first_call_s: float, most_s: float) -> float:
    """Run blocks of calls until three in a row aren't faster; return the last median in s.

    A call that is slow beside ``most_s`` warms up by two calls at most.
    """
    best = float("inf")
    steady = 0
    spent = 0.0
    blocks = 0
    median = first_call_s
    slow = 0.5
    while steady < _STEADY_BLOCKS and spent < most_s:
        samples: array[int] = array("q")
        burst(samples, min(BLOCK_S, most_s / 5))
        blocks += 1
        spent += sum(samples) / 1e9
        median = statistics.median(samples) / 1e9
        steady = 0 if median < _FALLING * best else steady + 1
        best = min(best, median)
        if median >= slow and blocks >= 2:
            break
    return median
