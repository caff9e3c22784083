"""Memory growth per call: the slope of allocated memory over warm calls. A leak, or none."""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any

POINTS = 30
_LEAST_POINTS = 10
_TIME_S = 0.06
_LONGEST_S = 0.5
_SMALL_OBJECT = 64.0
"""A typical small block of pymalloc's, in bytes: it tells how many there are, not how large."""


class _Mallinfo2(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    )  # fmt: skip


def host_allocated() -> Callable[[], float] | None:
    """Return a function that gives the bytes glibc and Python have handed out; None elsewhere."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return None
    mallinfo2.restype = _Mallinfo2

    def allocated() -> float:
        info = mallinfo2()
        # Python maps the arenas of its small objects itself: glibc doesn't see them
        return float(info.uordblks + info.hblkhd) + _SMALL_OBJECT * sys.getallocatedblocks()

    return allocated


def memory_growth(
    call: Callable[[], Any], call_s: float, allocated: Callable[[], float]
) -> float | None:
    """Return the growth in bytes a call (Theil–Sen slope), or None where calls are too slow."""
    points = POINTS
    calls = int(_TIME_S / POINTS / max(call_s, 1e-7))
    if calls < 1:
        points = int(_LONGEST_S / call_s)
        calls = 1
        if points < _LEAST_POINTS:
            return None
    calls = min(calls, 100)
    points = min(points, POINTS)
    levels = array("d", bytes(8 * points))  # made beforehand: the list itself must not grow
    for point in range(points):
        for _ in range(calls):
            call()
        levels[point] = allocated()
    return theil_sen(levels) / calls


def theil_sen(levels: Sequence[float]) -> float:
    """Return the median of the slopes between all pairs of points.

    Sen (1968), Estimates of the regression coefficient based on Kendall's tau.
    """
    slopes = sorted(
        (levels[j] - levels[i]) / (j - i)
        for i in range(len(levels))
        for j in range(i + 1, len(levels))
    )
    middle = len(slopes) // 2
    return slopes[middle] if len(slopes) % 2 else (slopes[middle - 1] + slopes[middle]) / 2
