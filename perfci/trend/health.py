"""The gate's own health: false alarms of A/A reports, undecided answers, missing dates, runners."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perfci.model.run import GateOutcome
from perfci.trend.change import Health, RunnerDrift
from perfci.trend.replaced import is_own
from perfci.trend.series import Series, Timeline
from perfci.units import date_of, day_of, in_utc

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPAN = 21
"""Runs around a run, itself included, whose median its values are compared with."""

_FURTHEST = 1e30
"""A pace that is no machine's, and that four bytes still hold."""

FEWEST = 5
"""Series: with fewer, a run's pace is that of its benchmarks, not of its machine."""


def health(
    outcomes: Sequence[GateOutcome],
    timelines: Mapping[str, Timeline],
    series: Sequence[Series],
    *,
    replaced: Collection[str] = (),
    now: str,
) -> Health:
    """Return the gate's health, from how its reports ended and from the whole history.

    ``now`` is ISO 8601 in UTC; ``replaced`` are environments in which nothing more will come.
    """
    own = {key: line for key, line in sorted(timelines.items()) if is_own(line)}
    current = {key: line for key, line in own.items() if key not in replaced}
    same = [outcome for outcome in outcomes if outcome.same]
    return Health(
        same_reports=len(same),
        same_failed=sum(outcome.verdict == "fail" for outcome in same),
        reports=len(outcomes),
        comparisons=sum(outcome.comparisons for outcome in outcomes),
        inconclusive=sum(outcome.inconclusive for outcome in outcomes),
        missing_nights={key: missing_nights(line) for key, line in own.items()},
        runner_drift=runner_drift(timelines, series),
        days_since_run=_days_since_run(current, now),
    )


def missing_nights(timeline: Timeline) -> tuple[str, ...]:
    """Return the dates between the first and the last run on which nothing was measured."""
    days = {day for run in timeline.runs if (day := day_of(run.measured_at)) is not None}
    if not days:
        return ()
    return tuple(date_of(day) for day in range(min(days), max(days)) if day not in days)


def _days_since_run(timelines: Mapping[str, Timeline], now: str) -> dict[str, int]:
    today = day_of(in_utc(now))
    found = {}
    for key, line in timelines.items():
        days = [day for run in line.runs if (day := day_of(in_utc(run.measured_at)))]
        if days and today is not None:
            found[key] = max(0, today - max(days))
    return found


def runner_drift(
    timelines: Mapping[str, Timeline], series: Sequence[Series]
) -> tuple[RunnerDrift, ...]:
    """Return each runner's pace: by run, the median over series of value ÷ running median.

    Only metrics in seconds count, as a slower machine shows in all of them at once and in no
    count or size; runs with fewer than ``FEWEST`` of them are left out. Dates rise.
    """
    by_environment: dict[str, list[Series]] = {}
    for one in series:
        if one.unit == "s" and one.direction == "lower" and len(one.values) >= FEWEST:
            by_environment.setdefault(one.key.environment, []).append(one)
    found: list[RunnerDrift] = []
    for key, some in sorted(by_environment.items()):
        found += _of_environment(timelines[key], some)
    return tuple(found)


def _of_environment(timeline: Timeline, series: Sequence[Series]) -> list[RunnerDrift]:
    import numpy as np

    table = np.full((len(series), len(timeline.runs)), np.nan, dtype=np.float32)
    for index, one in enumerate(series):
        if one.values.min() > 0.0:
            paces = one.values / _running_median(one.values)
            table[index, one.rows] = np.clip(paces, 1.0 / _FURTHEST, _FURTHEST)
    counts = np.count_nonzero(np.isfinite(table), axis=0)
    usable = np.flatnonzero(counts >= FEWEST)
    if not len(usable):
        return []
    paces = np.nanmedian(table[:, usable], axis=0)
    by_runner: dict[str, list[tuple[str, float]]] = {}
    for row, pace in zip(usable.tolist(), paces.tolist(), strict=True):
        run = timeline.runs[row]
        by_runner.setdefault(run.runner, []).append((run.measured_at, pace))
    drifts = []
    for runner, runs in sorted(by_runner.items()):
        runs.sort()
        middle = float(np.median([pace for _, pace in runs]))
        drifts.append(
            RunnerDrift(
                environment=timeline.environment,
                runner=runner,
                dates=tuple(moment for moment, _ in runs),
                ratios=tuple(pace / middle for _, pace in runs),
            )
        )
    return drifts


def _running_median(values: NDArray[Any]) -> NDArray[Any]:
    from scipy import ndimage

    size = min(SPAN, (len(values) - 1) // 2 * 2 + 1)
    smooth: NDArray[Any] = ndimage.median_filter(values, size=size, mode="nearest")
    return smooth
