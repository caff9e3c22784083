"""Warming up: until the worker's own latencies stop falling."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from time import perf_counter

BLOCK_S = 0.02
_STEADY_BLOCKS = 3
_FALLING = 0.99
"""A block whose median is under this share of the best before is still falling."""
_SLOW_S = 0.5
_SLOW_CALLS = 2


def warm_up(
    burst: Callable[[array[int], float], object], first_call_s: float, most_s: float
) -> float:
    """Run blocks of calls until three in a row aren't faster; return the last median in s.

    At most ``most_s``; calls of half a second or more are made twice at most.
    """
    best = float("inf")
    steady = 0
    calls = 0
    median = first_call_s
    end = perf_counter() + most_s
    while steady < _STEADY_BLOCKS and perf_counter() < end:
        samples: array[int] = array("q")
        burst(samples, min(BLOCK_S, most_s / 5))
        calls += len(samples)
        median = sorted(samples)[len(samples) // 2] / 1e9
        steady = 0 if median < _FALLING * best else steady + 1
        best = min(best, median)
        if median >= _SLOW_S and calls >= _SLOW_CALLS:
            break
    return median
