"""The gate's health: false alarms, missing dates, runners, and environments that were replaced."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from perfci.model.run import GateOutcome
from perfci.trend import Health, Replacement, RunnerDrift, Series, SeriesKey, Timeline
from perfci.units import date_of, day_of, in_utc

MEDIAN_RUNS = 21
"""Width in runs of the running median that a run's values are compared with."""
FEWEST_SERIES = 5
"""Least number of series for a run's pace. With fewer, the benchmarks would make the pace, not the
machine."""
MOST_SERIES = 2000
"""Series of an environment, at most, that its runs' paces are the medians of: more tell no more."""
_FURTHEST = 1e30
"""Largest pace, and 1 ÷ the smallest. No machine reaches it, and a float32 holds it."""
_RUNS_COMPARED = 14
"""Runs on each side of a replacement that are compared, at most."""
_OWN_SOURCES = {"run", "compare", "check", "nightly"}
"""Sources of runs that perfci measured itself. Other runs were imported now and then."""
_DAYS_UNTIL_GONE = 14
"""A series is gone if its environment was measured on this many later days without the series."""


def health(
    outcomes: Sequence[GateOutcome],
    timelines: Mapping[str, Timeline],
    series: Sequence[Series],
    *,
    replaced: Collection[str] = (),
    now: str,
) -> Health:
    """Return the gate's health, from how its reports ended and from the whole history.

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
    since = {}
    for key, line in timelines.items():
        days = [day for run in line.runs if (day := day_of(in_utc(run.measured_at)))]
        if days and today is not None:
            since[key] = max(0, today - max(days))
    return since


def runner_drift(
    timelines: Mapping[str, Timeline], series: Sequence[Series]
) -> tuple[RunnerDrift, ...]:
    """Return each runner's pace by run: the median over its series of value ÷ running median.

    Only metrics in seconds count: a slower machine shows in all of them at once, and in no count or
    size. Runs with fewer than ``FEWEST_SERIES`` such series are left out. Dates rise.
    """
    by_environment: dict[str, list[Series]] = {}
    for entry in series:
        if entry.unit == "s" and entry.direction == "lower" and len(entry.values) >= FEWEST_SERIES:
            by_environment.setdefault(entry.key.environment, []).append(entry)
    for key, timed in by_environment.items():
        by_environment[key] = timed[:: -(-len(timed) // MOST_SERIES)]
    drifts: list[RunnerDrift] = []
    for key, timed in sorted(by_environment.items()):
        drifts += _drifts_on(timelines[key], timed)
    return tuple(drifts)


def _drifts_on(timeline: Timeline, series: Sequence[Series]) -> list[RunnerDrift]:
    """Return the drift of each runner of an environment, from its ``series`` in seconds."""
    import numpy as np
    from scipy import ndimage

    table = np.full((len(series), len(timeline.runs)), np.nan, dtype=np.float32)
    for index, entry in enumerate(series):
        if entry.values.min() > 0.0:
            size = min(MEDIAN_RUNS, (len(entry.values) - 1) // 2 * 2 + 1)
            paces = entry.values / ndimage.median_filter(entry.values, size=size, mode="nearest")
            table[index, entry.rows] = np.clip(paces, 1.0 / _FURTHEST, _FURTHEST)
    counts = np.count_nonzero(np.isfinite(table), axis=0)
    usable = np.flatnonzero(counts >= FEWEST_SERIES)
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


def replacements(
    timelines: Mapping[str, Timeline], series: Sequence[Series]
) -> tuple[Replacement, ...]:
    """Return where an environment ended on a runner before another began there, newest first.

    Environments that take turns don't replace each other. Runs of other tools are left out, because
    what they call a machine may be several.
    """
    spans = _spans_by_runner(timelines)
    spans.pop("", None)
    by_environment: dict[str, dict[tuple[str, str], Series]] = {}
    for item in series:
        known = by_environment.setdefault(item.key.environment, {})
        known[item.key.case, item.key.metric] = item
    replaced = []
    for runner, span_of in spans.items():
        ordered = sorted(span_of, key=span_of.__getitem__)
        for old, new in pairwise(ordered):
            if span_of[old][1] < span_of[new][0]:
                costs = tuple(_costs(by_environment.get(old, {}), by_environment.get(new, {})))
                facts = _differing(timelines[old].facts, timelines[new].facts)
                cost = median(costs) if costs else None
                at = span_of[new][0]
                replaced.append(Replacement(runner, old, new, at, facts, len(costs), cost))
    return tuple(sorted(replaced, key=lambda line: (line.at, line.runner), reverse=True))


def _costs(
    olds: Mapping[tuple[str, str], Series], news: Mapping[tuple[str, str], Series]
) -> Iterator[float]:
    for name in olds.keys() & news.keys():
        old, new = olds[name], news[name]
        before = float(median(old.values[-_RUNS_COMPARED:].tolist()))
        after = float(median(new.values[:_RUNS_COMPARED].tolist()))
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
        recently = measured_on[-_DAYS_UNTIL_GONE:][0]
        if key not in replaced and days[key][entry.rows[-1]] >= recently:
            continue
        last = days[key][entry.rows].max()
        later = len(measured_on) - int(np.searchsorted(measured_on, last, side="right"))
        if key in replaced or later >= _DAYS_UNTIL_GONE:
            gone.add(entry.key)
    return frozenset(gone)
