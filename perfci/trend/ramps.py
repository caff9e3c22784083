"""Slow ramps: where steps one way, one after the other, are better told as one straight rise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.trend.noise import Prepared, inflation
from perfci.trend.significance import Split

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHORTEST_RAMP = 12
"""Points: what rises faster is a step."""

REACH = 120
"""Points of the levels before and after that are looked at."""

MOST_STEPS = 6
"""Steps that one ramp may be taken for; more would cost time and never was one."""

_GRID = 14


@dataclass(frozen=True, slots=True)
class Ramp:
    """Flat up to ``before``, then straight to ``after``, then flat; ``variance`` of the difference.

    ``error`` is the sum of squares around it.
    """

    before: int
    after: int
    difference: float
    variance: float
    error: float


@dataclass(frozen=True, slots=True)
class Stretch:
    """Splits ``first`` to ``last``, both included, that are one ramp."""

    first: int
    last: int
    ramp: Ramp


def find_ramps(prepared: Prepared, splits: Sequence[Split]) -> tuple[Stretch, ...]:
    """Return the stretches of ``splits`` that are ramps, apart from each other, in order.

    Notes
    -----
    By the Bayesian information criterion with the long-run variance: a step costs two numbers
    (place and level), a ramp three (two places and a level).
    """
    found: list[Stretch] = []
    start = 0
    for stop in range(1, len(splits) + 1):
        turned = stop == len(splits) or (
            splits[stop].test.difference * splits[start].test.difference < 0.0
        )
        if turned:
            found += _within(prepared, splits, start, stop)
            start = stop
    return tuple(found)


def _within(prepared: Prepared, splits: Sequence[Split], start: int, stop: int) -> list[Stretch]:
    """Find the best ramp among splits of one direction, then those left and right of it."""
    best: Stretch | None = None
    most = 0.0
    for first in range(start, stop):
        for last in range(first, min(stop, first + MOST_STEPS)):
            gain, ramp = _gain(prepared, splits[first : last + 1])
            if ramp is not None and gain > most:
                best, most = Stretch(first, last, ramp), gain
    if best is None:
        return []
    return [
        *_within(prepared, splits, start, best.first),
        best,
        *_within(prepared, splits, best.last + 1, stop),
    ]


def _gain(prepared: Prepared, splits: Sequence[Split]) -> tuple[float, Ramp | None]:
    """Return by how much a ramp is better than these steps, > 0 where it is, and the ramp."""
    import numpy as np

    low = max(splits[0].begin, splits[0].place - REACH)
    high = min(splits[-1].end, splits[-1].place + REACH)
    points = prepared.cleaned[low:high]
    ramp = fit_ramp(points)
    if ramp is None:
        return 0.0, None
    pieces = np.split(points, [split.place - low for split in splits])
    steps = math.fsum(float(((piece - piece.mean()) ** 2).sum()) for piece in pieces)
    count = float(len(points))
    unit = prepared.sigma**2 * float(inflation(count, prepared.rho))
    price = math.log(count) * (3 - 2 * len(splits))
    moved = Ramp(
        before=ramp.before + low,
        after=ramp.after + low,
        difference=ramp.difference,
        variance=ramp.variance * unit,
        error=ramp.error,
    )
    return (steps - ramp.error) / unit - price, moved


def fit_ramp(points: NDArray[Any]) -> Ramp | None:
    """Fit flat, straight, flat to ``points`` (n,) by least squares; None where there is no room.

    ``variance`` of the result is for independent noise of variance 1. First on a coarse grid of
    beginnings and ends, then twice on a finer one around the best.
    """
    import numpy as np

    size = len(points)
    if size < SHORTEST_RAMP + 2:
        return None
    step = max(1, size // _GRID)
    begins = np.arange(0, size - SHORTEST_RAMP, step)
    ends = np.arange(SHORTEST_RAMP, size, step)
    while True:
        best = _best(points, begins, ends)
        if best is None or step == 1:
            return best
        finer = max(1, step // 5)
        around = np.arange(-step, step + 1, finer)
        begins = np.unique(np.clip(best.before + around, 0, size - 1 - SHORTEST_RAMP))
        ends = np.unique(np.clip(best.after + around, SHORTEST_RAMP, size - 1))
        step = finer


def _best(points: NDArray[Any], begins: NDArray[Any], ends: NDArray[Any]) -> Ramp | None:
    """The least squared error over all pairs of a beginning and an end.

    Notes
    -----
    Points are ``a + d s`` with the share ``s = clip((t - begin) / (end - begin), 0, 1)``: linear
    in a and d, so ``d = S_sx / S_ss`` and the error ``S_xx - S_sx² / S_ss`` of centred sums.
    """
    import numpy as np

    begin, end = (axis.ravel() for axis in np.meshgrid(begins, ends))
    roomy = end - begin >= SHORTEST_RAMP
    begin, end = begin[roomy], end[roomy]
    if not len(begin):
        return None
    centred = points - points.mean()
    share = (np.arange(len(points)) - begin[:, None]) / (end - begin)[:, None]
    np.clip(share, 0.0, 1.0, out=share)
    with_points = share @ centred
    total = share.sum(axis=1)
    own = np.einsum("ij,ij->i", share, share) - total * total / len(points)
    explained = with_points * with_points / own
    best = int(explained.argmax())
    return Ramp(
        before=int(begin[best]),
        after=int(end[best]),
        difference=float(with_points[best] / own[best]),
        variance=float(1.0 / own[best]),
        error=float(centred @ centred - explained[best]),
    )
