"""The gate's health: false alarms and missing dates; and the series that are no longer measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from perfci.model.run import GateOutcome
from perfci.trend import Health, Series, SeriesKey, Timeline
from perfci.units import date_of, day_of, in_utc

_OWN_SOURCES = {"run", "compare", "check", "nightly"}
"""Sources of runs that perfci measured itself. Other runs were imported now and then."""
_DAYS_UNTIL_GONE = 14
"""A series is gone if its environment was measured on this many later days without the series."""


def health(
    outcomes: Sequence[GateOutcome],
    timelines: Mapping[str, Timeline],
    *,
    replaced: Collection[str] = (),
    now: str,
) -> Health:
    """Return the gate's health, from how its reports ended and when it measured.

    ``now`` is ISO 8601 in UTC. ``replaced`` are environments without any further runs.
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
    since = {}
    for key, line in timelines.items():
        days = [day for run in line.runs if (day := day_of(in_utc(run.measured_at)))]
        if days and today is not None:
            since[key] = max(0, today - max(days))
    return since


def is_own(timeline: Timeline) -> bool:
    """Return whether perfci itself measured in the environment."""
    return any(run.source in _OWN_SOURCES for run in timeline.runs)


def _spans_by_runner(
    timelines: Mapping[str, Timeline],
) -> dict[str, dict[str, tuple[str, str]]]:
    """Return the first and last moment of perfci's own runs, by runner, then by environment."""
    spans: dict[str, dict[str, tuple[str, str]]] = {}
    for key, timeline in timelines.items():
        for run in timeline.runs if is_own(timeline) else ():
            if moment := in_utc(run.measured_at):
                span_of = spans.setdefault(run.runner, {})
                first, last = span_of.get(key, (moment, moment))
                span_of[key] = min(first, moment), max(last, moment)
    return spans


def replaced_environments(timelines: Mapping[str, Timeline]) -> frozenset[str]:
    """Return the environments that all of their runners have left for a later environment.

    So a new driver replaces the old one, but two environments that take turns on a machine stay.
    Environments of other tools' runs are left out, because what they call a machine may be several.
    """
    known: set[str] = set()
    in_use: set[str] = set()
    for span_of in _spans_by_runner(timelines).values():
        newest_began = max(first for first, _ in span_of.values())
        known.update(span_of)
        in_use.update(key for key, (_, last) in span_of.items() if last >= newest_began)
    return frozenset(known - in_use)


def series_gone(
    timelines: Mapping[str, Timeline], series: Sequence[Series], replaced: Collection[str]
) -> frozenset[SeriesKey]:
    """Return the series that are no longer measured, and all series of ``replaced`` environments.

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
        key = entry.key.environment
        measured_on = distinct_days[key]
        last = days[key][entry.rows].max()
        later = len(measured_on) - int(np.searchsorted(measured_on, last, side="right"))
        if key in replaced or later >= _DAYS_UNTIL_GONE:
            gone.add(entry.key)
    return frozenset(gone)
