"""Environments that replaced each other, and cases that are measured no more."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from perfci.trend.change import Replacement
from perfci.trend.series import Series, SeriesKey, Timeline
from perfci.units import day_of, in_utc

if TYPE_CHECKING:
    from perfci.trend.series import Series, Timeline

_RUNS = 14
"""On each side, of a series: so many are compared, at most."""
_OWN = {"run", "compare", "check", "nightly"}
"""Sources of runs that perfci measured itself. Others import a file now and then."""
_DAYS = 14
"""Days on which its environment was measured without it, after which a series is gone."""


def replacements(
    timelines: Mapping[str, Timeline], series: Sequence[Series]
) -> tuple[Replacement, ...]:
    """Return where an environment ended on a runner before another began there, newest first.

    Two that take turns replace none. Of other tools' runs nothing is said: what they call a
    machine may be several.
    """
    spans: dict[str, dict[str, tuple[str, str]]] = {}
    for key, timeline in timelines.items():
        for run in timeline.runs if is_own(timeline) else ():
            if run.runner and (moment := in_utc(run.measured_at)):
                of_runner = spans.setdefault(run.runner, {})
                first, last = of_runner.get(key, (moment, moment))
                of_runner[key] = min(first, moment), max(last, moment)
    by_environment: dict[str, dict[tuple[str, str], Series]] = {}
    for one in series:
        known = by_environment.setdefault(one.key.environment, {})
        known[one.key.case, one.key.metric] = one
    found = []
    for runner, of_runner in spans.items():
        ordered = sorted(of_runner, key=of_runner.__getitem__)
        for old, new in pairwise(ordered):
            if of_runner[old][1] < of_runner[new][0]:
                costs = tuple(_costs(by_environment.get(old, {}), by_environment.get(new, {})))
                facts = _differing(timelines[old].facts, timelines[new].facts)
                cost = median(costs) if costs else None
                at = of_runner[new][0]
                found.append(Replacement(runner, old, new, at, facts, len(costs), cost))
    return tuple(sorted(found, key=lambda one: (one.at, one.runner), reverse=True))


def _costs(
    olds: Mapping[tuple[str, str], Series], news: Mapping[tuple[str, str], Series]
) -> Iterator[float]:
    for name in olds.keys() & news.keys():
        old, new = olds[name], news[name]
        before = float(median(old.values[-_RUNS:].tolist()))
        after = float(median(new.values[:_RUNS].tolist()))
        if old.unit == new.unit and before > 0.0 and after > 0.0:
            yield after / before if old.direction == "lower" else before / after


def _differing(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (name, old.get(name, ""), new.get(name, ""))
        for name in sorted(old.keys() | new.keys())
        if old.get(name, "") != new.get(name, "") and not name.startswith("note_")
    )


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
