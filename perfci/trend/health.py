"""The gate's health: false alarms and missing dates; and the series that are no longer measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfci.model.run import GateOutcome
from perfci.trend import Health, Series, SeriesKey, Timeline
from perfci.units import date_of, day_of

_OWN_SOURCES = {"run", "compare", "check", "nightly"}
"""Sources of runs that perfci measured itself. Other runs were imported now and then."""
_DAYS_UNTIL_GONE = 14
"""A series is gone if its environment was measured on this many later days without the series."""


def health(outcomes: Sequence[GateOutcome], timelines: Mapping[str, Timeline]) -> Health:
    """Return the gate's health, from how its reports ended and when it measured."""
    same = [outcome for outcome in outcomes if outcome.same]
    return Health(
        same_reports=len(same),
        same_failed=sum(outcome.verdict == "fail" for outcome in same),
        reports=len(outcomes),
        comparisons=sum(outcome.comparisons for outcome in outcomes),
        inconclusive=sum(outcome.inconclusive for outcome in outcomes),
        missing_nights={
            key: _missing_nights(line)
            for key, line in sorted(timelines.items())
            if any(run.source in _OWN_SOURCES for run in line.runs)
        },
    )


def _missing_nights(timeline: Timeline) -> tuple[str, ...]:
    """Return the dates between the first and the last run on which nothing was measured."""
    days = {day for run in timeline.runs if (day := day_of(run.measured_at)) is not None}
    if not days:
        return ()
    return tuple(date_of(day) for day in range(min(days), max(days)) if day not in days)


def series_gone(
    timelines: Mapping[str, Timeline], series: Sequence[Series]
) -> frozenset[SeriesKey]:
    """Return the series that are no longer measured in their environment.

    Days with runs are counted, and not the time between runs, because a wrong clock may put a run
    far ahead.
    """
    import numpy as np

    days = {
        key: np.array([day_of(run.measured_at) or 0 for run in timeline.runs])
        for key, timeline in timelines.items()
    }
    distinct_days = {key: np.unique(days_there) for key, days_there in days.items()}
    gone = set()
    for entry in series:
        measured_on = distinct_days[entry.key.environment]
        last = days[entry.key.environment][entry.rows].max()
        later = len(measured_on) - int(np.searchsorted(measured_on, last, side="right"))
        if later >= _DAYS_UNTIL_GONE:
            gone.add(entry.key)
    return frozenset(gone)
