"""Slow ramps: successive steps in one direction that one straight line explains better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perfci.trend.noise import Prepared, Split, inflation

if TYPE_CHECKING:
    from numpy.typing import NDArray


SHORTEST_RAMP = 12
"""Points. A shorter rise is a step."""
REACH = 120
"""Most points of the level before, and of the level after, that a ramp is fitted to."""
MOST_STEPS = 6
"""Most splits that are tried as one ramp. Longer ramps come from joining these: it costs less."""
_GRID = 14
"""Approximate number of beginnings, and also of ends, that the first search tries."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """A line that is flat up to ``before``, straight to ``after``, then flat.

    Both are indices: the last point of the old level, and the first of the new one. ``variance`` is
    that of ``difference``; ``squared_error`` is summed over the points.
    """

    before: int
    after: int
    difference: float
    variance: float
    squared_error: float


def fit_ramp(points: NDArray[Any]) -> Ramp | None:
    """Fit a ramp to ``points`` (n,) by least squares. Return None for too few points.

    ``variance`` of the result is for independent noise of variance 1. The search uses a coarse grid
    of beginnings and ends, then finer ones around the best.
    """
    import numpy as np

    size = len(points)
    if size < SHORTEST_RAMP + 2:
        return None
    centred = points - points.mean()
    sums = np.concatenate([[0.0], np.cumsum(centred)])
    moments = np.concatenate([[0.0], np.cumsum(np.arange(size) * centred)])
    squares = float(centred @ centred)
    step = max(1, size // _GRID)
    begins = np.arange(0, size - SHORTEST_RAMP, step)
    ends = np.arange(SHORTEST_RAMP, size, step)
    while True:
        best = _best(sums, moments, squares, begins, ends)
        if best is None or step == 1:
            return best
        finer = max(1, step // 5)
        around = np.arange(-step, step + 1, finer)
        begins = np.unique(np.clip(best.before + around, 0, size - 1 - SHORTEST_RAMP))
        ends = np.unique(np.clip(best.after + around, SHORTEST_RAMP, size - 1))
        step = finer


def _best(
    sums: NDArray[Any],
    moments: NDArray[Any],
    squares: float,
    begins: NDArray[Any],
    ends: NDArray[Any],
) -> Ramp | None:
    """Return the ramp with the least squared error over all pairs of a beginning and an end.

    ``sums`` and ``moments`` (n + 1,) are the cumulated centred points x, and t x.

    Notes
    -----
    Points are ``a + d s`` with the share ``s = clip((t - begin) / (end - begin), 0, 1)``: linear
    in a and d, so ``d = S_sx / S_ss`` and the error ``S_xx - S_sx² / S_ss`` of centred sums. All
    these sums come from cumulated sums, so that a pair costs the same for any number of points.
    """
    import numpy as np

    begin, end = np.tile(begins, len(ends)), np.repeat(ends, len(begins))
    roomy = end - begin >= SHORTEST_RAMP
    begin, end = begin[roomy], end[roomy]
    if not len(begin):
        return None
    size, width = len(sums) - 1, (end - begin).astype(float)
    risen = size - 1.0 - end  # points at the new level
    rise = moments[end + 1] - moments[begin + 1] - begin * (sums[end + 1] - sums[begin + 1])
    s_sx = rise / width + sums[-1] - sums[end + 1]
    s_sum = (width + 1.0) / 2.0 + risen
    s_ss = (width + 1.0) * (2.0 * width + 1.0) / (6.0 * width) + risen - s_sum * s_sum / size
    explained = s_sx * s_sx / s_ss
    best = int(explained.argmax())
    return Ramp(
        before=int(begin[best]),
        after=int(end[best]),
        difference=float(s_sx[best] / s_ss[best]),
        variance=float(1.0 / s_ss[best]),
        squared_error=max(0.0, squares - float(explained[best])),
    )


@dataclass(frozen=True, slots=True)
class RampSplits:
    """Splits from ``first`` to ``last``, both included, that are one ramp.

    The ramp was fitted to the points from ``low`` to before ``high``. ``gain`` is its advantage
    over steps.
    """

    first: int
    last: int
    ramp: Ramp
    low: int
    high: int
    gain: float


def find_ramps(prepared: Prepared, splits: Sequence[Split]) -> tuple[RampSplits, ...]:
    """Return the ``splits`` that are ramps, without overlap, in order.

    Notes
    -----
    By the Bayesian information criterion with the long-run variance: a step costs two numbers
    (place and level), a ramp three (two places and a level).
    """
    ramps: list[RampSplits] = []
    start = 0
    for stop in range(1, len(splits) + 1):
        turned = stop == len(splits) or (
            splits[stop].test.difference * splits[start].test.difference < 0.0
        )
        if turned:
            best = _best_first(prepared, splits, start, stop)
            ramps += _without_overlap(prepared, splits, best)
            start = stop
    return tuple(ramps)


def _best_first(
    prepared: Prepared, splits: Sequence[Split], start: int, stop: int
) -> list[RampSplits]:
    """Return ramps that share no split, among splits of one direction, in order.

    The best ramp is taken first, then the best ramp of the splits that are left, and so on.
    """
    fits = []
    for first in range(start, stop):
        for last in range(first, min(stop, first + MOST_STEPS)):
            low = max(splits[first].begin, splits[first].place - REACH)
            high = min(splits[last].end, splits[last].place + REACH)
            fits.append(_fit(prepared, splits[first : last + 1], first, low, high))
    taken: set[int] = set()
    chosen = []
    for fitted in sorted(filter(None, fits), key=lambda fitted: -fitted.gain):
        own = range(fitted.first, fitted.last + 1)
        if taken.isdisjoint(own):
            taken.update(own)
            chosen.append(fitted)
    return sorted(chosen, key=lambda fitted: fitted.low)


def _without_overlap(
    prepared: Prepared, splits: Sequence[Split], ramps: Sequence[RampSplits]
) -> list[RampSplits]:
    """Join neighbouring ramps that claim the same rise, or cut the rise if two slopes fit better.

    Each ramp was fitted as far as the other's first or last split, so both may claim the rise
    between these splits.
    """
    done: list[RampSplits] = []
    for fitted in ramps:
        new = fitted
        while done and _meet(done[-1], new):
            old = done.pop()
            both = splits[old.first : new.last + 1]
            joined = _fit(prepared, both, old.first, old.low, new.high)
            parted, gain = _parted(prepared, splits, old, new)
            if joined is None or joined.gain < gain:
                done += parted[:-1]
                new = parted[-1]
                break
            new = joined
        done.append(new)
    return done


def _meet(old: RampSplits, new: RampSplits) -> bool:
    return old.last + 1 == new.first and old.ramp.after >= new.ramp.before


def _parted(
    prepared: Prepared, splits: Sequence[Split], old: RampSplits, new: RampSplits
) -> tuple[list[RampSplits], float]:
    """Return both ramps, each on its side of the middle of the shared rise, and their gain.

    If one of the ramps alone is better, return only this ramp. The splits of the other are then
    steps.
    """
    begin, end = splits[old.last].place, splits[new.first].place
    cut = max((old.ramp.after + new.ramp.before + 1) // 2, begin + 1)
    left = _fit(prepared, splits[old.first : old.last + 1], old.first, old.low, cut)
    right = _fit(prepared, splits[new.first : new.last + 1], new.first, cut, new.high)
    kept = max(([old], [new]), key=lambda ramps: ramps[0].gain)
    gain = kept[0].gain
    if left is not None and right is not None:
        # each is compared with steps that end at the cut, where the level between goes on
        between = prepared.cleaned[begin:end]
        gap = between[: cut - begin].mean() - between[cut - begin :].mean()
        squares = float(gap * gap) * (cut - begin) * (end - cut) / (end - begin)
        count = float(new.high - old.low)
        noise_variance = prepared.sigma**2 * float(inflation(count, prepared.rho))
        both = left.gain + right.gain + squares / noise_variance
        if both >= gain:
            kept, gain = [left, right], both
    return kept, gain


def _fit(
    prepared: Prepared, splits: Sequence[Split], first: int, low: int, high: int
) -> RampSplits | None:
    """Fit a ramp for ``splits`` from index ``first`` on. Return None if steps are better."""
    import numpy as np

    points = prepared.cleaned[low:high]
    ramp = fit_ramp(points)
    if ramp is None:
        return None
    bounds = [0, *(split.place - low for split in splits)]
    counts = np.diff([*bounds, len(points)])
    centred = points - points.mean()
    levels = np.add.reduceat(centred, bounds)
    step_error = float(centred @ centred - (levels * levels / counts).sum())
    count = float(len(points))
    noise_variance = prepared.sigma**2 * float(inflation(count, prepared.rho))
    extra_cost = math.log(count) * (3 - 2 * len(splits))  # BIC: 3 numbers against 2 per step
    gain = (step_error - ramp.squared_error) / noise_variance - extra_cost
    if gain <= 0.0:
        return None
    in_series = replace(
        ramp,
        before=ramp.before + low,
        after=ramp.after + low,
        variance=ramp.variance * noise_variance,
    )
    return RampSplits(first, first + len(splits) - 1, in_series, low, high, gain)
