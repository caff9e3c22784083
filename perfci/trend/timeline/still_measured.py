"""What is measured no more: what moved there once is no open question of today's."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from perfci.model.instant import day_of, in_utc
from perfci.trend.timeline.series import Series, SeriesKey, Timeline

_OWN = {"run", "compare", "check", "nightly"}
"""Sources of runs that perfci measured itself. Others import a file now and then."""
_DAYS = 14
"""Days on which its environment was measured without it, after which a series is gone."""


def is_own(timeline: Timeline) -> bool:
    """Return whether perfci itself measured in the environment."""
    return any(run.source in _OWN for run in timeline.runs)


def replaced_environments(timelines: Mapping[str, Timeline]) -> frozenset[str]:
    """Return the environments that each of their runners has left for one that began later.

    So a new driver replaces the old one, but two that take turns on one machine stay two.
    Environments of other tools' runs are left out: what they call a machine may be several.
    """
    spans: dict[str, dict[str, tuple[str, str]]] = {}
    for key, timeline in timelines.items():
        for run in timeline.runs if is_own(timeline) else ():
            if moment := in_utc(run.measured_at):
                of_runner = spans.setdefault(run.runner, {})
                first, last = of_runner.get(key, (moment, moment))
                of_runner[key] = min(first, moment), max(last, moment)
    known: set[str] = set()
    in_use: set[str] = set()
    for of_runner in spans.values():
        newest_began = max(first for first, _ in of_runner.values())
        known.update(of_runner)
        in_use.update(key for key, (_, last) in of_runner.items() if last >= newest_began)
    return frozenset(known - in_use)


def series_gone(
    timelines: Mapping[str, Timeline], series: Sequence[Series], replaced: Collection[str]
) -> frozenset[SeriesKey]:
    """Return the series of ``replaced`` environments and of benchmarks that are no longer there.

    Days are counted, not their distance: a run that a wrong clock put far ahead is one day.
    """
    import numpy as np

    days = {
        key: np.array([day_of(run.measured_at) or 0 for run in timeline.runs])
        for key, timeline in timelines.items()
    }
    every = {key: np.unique(some) for key, some in days.items()}
    gone = set()
    for one in series:
        key = one.key.environment
        last = days[key][one.rows].max()
        later = len(every[key]) - int(np.searchsorted(every[key], last, side="right"))
        if key in replaced or later >= _DAYS:
            gone.add(one.key)
    return frozenset(gone)
