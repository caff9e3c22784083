"""Drift: the last days of a series against its last accepted level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfci.stats.evidence import benjamini_hochberg
from perfci.trend import Change, Drift, Series, SeriesKey, Timeline, TrendSettings, dates_of
from perfci.trend.change_points import ratio_of
from perfci.trend.noise import cumulate, measure_blocks, prepare, stretch_variance
from perfci.units import day_of

BASELINE_RUNS = 30
"""Most runs that make an accepted level, with which the last days are compared."""
FEWEST_RUNS = 4
"""Least number of runs on each side of a drift."""


@dataclass(frozen=True, slots=True)
class _DriftStretches:
    """The parts of a series to compare, as indices: the accepted level and the last days.

    The accepted level is from ``begin`` to before ``until``, where the first change after it begins
    or the series ends. The last days are from ``recent`` on. ``steps`` are the log ratios of the
    changes since the accepted level.
    """

    begin: int
    until: int
    recent: int
    steps: tuple[float, ...] = ()


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
        moved = changes.get(each.key, ())
        stretches = _stretches(each, recents[each.key.environment], moved)
        drift = _drift(each, timelines[each.key.environment], stretches, settings)
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
    known = [day_of(date) for date in dates_of(timeline)]
    newest = next((day for day in reversed(known) if day is not None), 0)
    row = len(known)
    while row and (day := known[row - 1]) is not None and day > newest - days:
        row -= 1
    return row


def _stretches(series: Series, recent_row: int, changes: Sequence[Change]) -> _DriftStretches:
    import numpy as np

    accepted = [c.after for c in changes if not c.worse or c.status == "acknowledged"]
    begin = max(accepted, default=0)
    since = [c for c in changes if c.after > begin]
    return _DriftStretches(
        begin=begin,
        until=min((c.before + 1 for c in since), default=len(series.rows)),
        recent=max(
            int(np.searchsorted(series.rows, recent_row)), max((c.after for c in since), default=0)
        ),
        steps=tuple(math.log(c.ratio) for c in since if c.ratio is not None),
    )


def _drift(
    series: Series, timeline: Timeline, stretches: _DriftStretches, settings: TrendSettings
) -> Drift | None:
    """Return the drift of the last days, with its p as ``q`` for now, or None for a small drift.

    Changes that were reported since the accepted level are subtracted first. The rest is a drift
    if it is more than ``drift_floor``.

    Notes
    -----
    Student's t on the rest. The variance is that of both means, inflated for AR(1), plus the
    wander's. p isn't adjusted for a search, because both stretches are given.
    """
    from scipy import special

    values = series.values
    end = min(stretches.begin + BASELINE_RUNS, stretches.until, stretches.recent)
    count, recent = end - stretches.begin, len(values) - stretches.recent
    if (
        min(count, recent) < FEWEST_RUNS
        or (lowest := values.min()) <= 0.0
        or lowest == values.max()
    ):
        return None
    first, last = values[stretches.begin : end].mean(), values[stretches.recent :].mean()
    smallest = math.log1p(settings.drift_floor)
    if abs(math.log(last / first) - math.fsum(stretches.steps)) < smallest / 2:
        return None  # less than half the floor: save the time for the test
    prepared = prepare(values)
    sums = cumulate(prepared)
    difference = sums.mean(stretches.recent, len(values)) - sums.mean(stretches.begin, end)
    unexplained = difference - math.fsum(stretches.steps)
    if abs(difference) < smallest or abs(unexplained) < smallest:
        return None
    wander = measure_blocks(prepared, sums.values).wander()
    accepted, accepted_df = stretch_variance(prepared, sums, stretches.begin, end)
    newest, newest_df = stretch_variance(prepared, sums, stretches.recent, len(values))
    wandered = wander.variance(count, recent)
    variance = accepted + newest + wandered
    df = variance**2 / (accepted**2 / accepted_df + newest**2 / newest_df + wandered**2 / wander.df)
    error = math.sqrt(variance)
    half = float(special.stdtrit(df, 0.975)) * error
    ratio = ratio_of(difference)
    return Drift(
        series=series.key,
        baseline_sha=timeline.runs[int(series.rows[stretches.begin])].sha,
        days=settings.drift_days,
        points=recent,
        ratio=ratio,
        ratio_lo=ratio_of(difference - half),
        ratio_hi=ratio_of(difference + half),
        q=2.0 * float(special.stdtr(df, -abs(unexplained / error))),
        worse=(ratio > 1.0) == (series.direction == "lower"),
    )
