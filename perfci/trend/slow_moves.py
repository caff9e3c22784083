"""Slow moves: ramps, which a line explains better than steps, and drift of the last days."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perfci.stats.evidence import benjamini_hochberg
from perfci.trend import Change, Drift, Series, SeriesKey, Timeline, TrendSettings
from perfci.trend.noise import (
    Prepared,
    Split,
    compare_levels,
    inflation,
    measure_blocks,
    prepare,
    ratio_of,
)
from perfci.units import day_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHORTEST_RAMP = 12
"""Points. A shorter rise is a step."""
REACH = 120
"""Most points of the level before, and of the level after, that a ramp is fitted to."""
MOST_STEPS = 24
"""Most splits that are tried as one ramp."""
_GRID = 14
"""Approximate number of beginnings, and also of ends, that the first search tries."""
BASELINE_RUNS = 30
"""Most runs that make an accepted level, with which the last days are compared."""
FEWEST_RUNS = 4
"""Least number of runs on each side of a drift."""


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

    ``gain`` is the ramp's advantage over steps.
    """

    first: int
    last: int
    ramp: Ramp
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
            ramps += _best_first(prepared, splits, start, stop)
            start = stop
    return tuple(ramps)


def _best_first(
    prepared: Prepared, splits: Sequence[Split], start: int, stop: int
) -> list[RampSplits]:
    """Return ramps that share no split and no rise, among splits of one direction, in order.

    The best ramp is taken first, then the best ramp of the splits that are left, and so on.
    """
    fits = []
    for first in range(start, stop):
        for last in range(first, min(stop, first + MOST_STEPS)):
            low = max(splits[first].begin, splits[first].place - REACH)
            high = min(splits[last].end, splits[last].place + REACH)
            fits.append(_fit(prepared, splits[first : last + 1], first, low, high))
    chosen: list[RampSplits] = []
    for fitted in sorted(filter(None, fits), key=lambda fitted: -fitted.gain):
        if not any(_meet(fitted, other) for other in chosen):
            chosen.append(fitted)
    return sorted(chosen, key=lambda fitted: fitted.first)


def _meet(one: RampSplits, other: RampSplits) -> bool:
    """Return whether both have a split or a part of the rise in common."""
    first, second = sorted((one, other), key=lambda fitted: fitted.first)
    return first.last >= second.first or first.ramp.after >= second.ramp.before


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
    return RampSplits(first, first + len(splits) - 1, in_series, gain)


def find_drifts(
    series: Sequence[Series],
    timelines: Mapping[str, Timeline],
    changes: Mapping[SeriesKey, tuple[Change, ...]],
    settings: TrendSettings,
) -> tuple[Drift, ...]:
    """Compare each series' last days with its last accepted level, the worst drift first.

    A level is accepted if it began with an acknowledged change or an improvement. Without any such
    change, the level at the beginning of the series is accepted.
    """
    days = settings.drift_days
    recents = {key: _recent_row(line, days) for key, line in timelines.items()}
    drifts = []
    for each in series:
        environment = each.key.environment
        stretches = _stretches(each, recents[environment], changes.get(each.key, ()))
        drift = _drift(each, timelines[environment], *stretches, settings)
        if drift is not None:
            drifts.append(drift)
    q_values = benjamini_hochberg([drift.q for drift in drifts], len(series))
    sure = [
        replace(drift, q=q)
        for drift, q in zip(drifts, q_values, strict=True)
        if q <= settings.false_discoveries
    ]
    return tuple(sorted(sure, key=lambda d: (not d.worse, -abs(math.log(d.ratio)), d.series)))


def _recent_row(timeline: Timeline, days: int) -> int:
    """Return the first row from which on every run lies within ``days`` days of the last one.

    On a quiet branch the last runs are of one commit, and are dated by when they were measured.
    """
    known = [day_of(date) for date in timeline.dates]
    newest = next((day for day in reversed(known) if day is not None), 0)
    row = len(known)
    while row and (day := known[row - 1]) is not None and day > newest - days:
        row -= 1
    return row


def _stretches(
    series: Series, recent_row: int, changes: Sequence[Change]
) -> tuple[tuple[int, int], tuple[int, int], float]:
    """Return the points of the accepted level, and of the last days since the newest change.

    Both are a begin and an end. The third is the log ratio of all changes between the two.
    """
    import numpy as np

    accepted = [c.after for c in changes if not c.worse or c.status == "acknowledged"]
    begin = max(accepted, default=0)
    since = [c for c in changes if c.after > begin]
    days = int(np.searchsorted(series.rows, recent_row))
    recent = max([days, *(c.after for c in since)])
    end = min([begin + BASELINE_RUNS, recent, *(c.before + 1 for c in since)])
    explained = math.fsum(math.log(c.ratio) for c in since if c.ratio is not None)
    return (begin, end), (recent, len(series.rows)), explained


def _drift(
    series: Series,
    timeline: Timeline,
    old: tuple[int, int],
    new: tuple[int, int],
    explained: float,
    settings: TrendSettings,
) -> Drift | None:
    """Return the drift from ``old`` to ``new``, with its p as ``q`` for now, or None if small.

    What changes have ``explained`` is subtracted. The rest is a drift if it is more than
    ``drift_floor``, by Student's t. Its p isn't adjusted for a search, because both stretches are
    given.
    """
    from scipy import special

    values = series.values
    fewest = min(old[1] - old[0], new[1] - new[0])
    if fewest < FEWEST_RUNS or (lowest := values.min()) <= 0.0 or lowest == values.max():
        return None
    smallest = math.log1p(settings.drift_floor)
    rough = math.log(values[slice(*new)].mean() / values[slice(*old)].mean())
    if abs(rough - explained) < smallest / 2:
        return None  # less than half the floor: save the time for the test
    prepared = prepare(values)
    wander = measure_blocks(prepared).wander()
    test = compare_levels(prepared, wander, old, new, searched=False)
    unexplained = test.difference - explained
    if min(abs(test.difference), abs(unexplained)) < smallest:
        return None
    half = float(special.stdtrit(test.df, 0.975)) * test.error
    ratio = ratio_of(test.difference)
    return Drift(
        series=series.key,
        baseline_sha=timeline.runs[int(series.rows[old[0]])].sha,
        days=settings.drift_days,
        points=new[1] - new[0],
        ratio=ratio,
        ratio_lo=ratio_of(test.difference - half),
        ratio_hi=ratio_of(test.difference + half),
        q=2.0 * float(special.stdtr(test.df, -abs(unexplained / test.error))),
        worse=(ratio > 1.0) == (series.direction == "lower"),
    )
