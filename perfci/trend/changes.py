"""Changes and drifts of a whole history: correct p over all series, and match known changes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from perfci.model import inherited
from perfci.model.run import RunHeader
from perfci.stats.evidence import benjamini_hochberg
from perfci.trend import (
    Analysis,
    Change,
    ChangeStatus,
    KnownChange,
    Move,
    Series,
    SeriesKey,
    Timeline,
    TrendSettings,
)
from perfci.trend.change_points import SHORTEST_SERIES, examine_all, too_few
from perfci.trend.slow_moves import find_drifts
from perfci.units import day_of

LONGEST_STEP = 7
"""Most points between a known step's old level and its new one. A longer change is a ramp."""
WOBBLE = 3
"""Points by which a known change may move when newer runs come in, even if its place was sure."""
BACK = 0.25
"""A later level has come back if at most this share of the change is left."""


T = TypeVar("T", int, str)


def analyse(
    series: Sequence[Series],
    timelines: Mapping[str, Timeline],
    *,
    known: Sequence[KnownChange] = (),
    now: str,
    settings: TrendSettings | None = None,
) -> Analysis:
    """Find the changes and drifts of ``series``.

    ``known`` are the changes that earlier reports named: they keep their ids.
    """
    settings = settings or TrendSettings()
    by_series: dict[SeriesKey, list[KnownChange]] = {}
    for change in known:
        by_series.setdefault(change.series, []).append(change)
    known_places = [
        _known_places(entry, timelines[entry.key.environment], by_series.get(entry.key, ()))
        for entry in series
    ]
    examined = examine_all([entry.values for entry in series], settings, known_places)
    changes: dict[SeriesKey, tuple[Change, ...]] = {}
    significant_moves = _significant(series, examined, settings)
    for entry, significant in zip(series, significant_moves, strict=True):
        if significant:
            known_here = by_series.get(entry.key, [])
            timeline = timelines[entry.key.environment]
            changes[entry.key] = _changes(entry, timeline, significant, known_here, now)
    drifts = find_drifts(series, timelines, changes, settings)
    short = frozenset(entry.key for entry in series if too_few(entry.values))
    return Analysis(
        changes=tuple(sorted(chain.from_iterable(changes.values()), key=worst_first)),
        drifts=drifts,
        too_few=short,
        withdrawn=tuple(_withdrawn(series, timelines, by_series, changes)),
    )


def _withdrawn(
    series: Sequence[Series],
    timelines: Mapping[str, Timeline],
    known: Mapping[SeriesKey, Sequence[KnownChange]],
    changes: Mapping[SeriesKey, Sequence[Change]],
) -> Iterator[KnownChange]:
    """Yield the known changes that are no longer seen, though the runs at their place are there."""
    for entry in series:
        seen = {change.id for change in changes.get(entry.key, ())}
        lost = [
            each for each in known.get(entry.key, ()) if each.id not in seen and not each.withdrawn
        ]
        points = _points(_runs_of(entry, timelines[entry.key.environment])) if lost else {}
        yield from (change for change in lost if change.sha_after in points)


def _known_places(
    series: Series, timeline: Timeline, known: Sequence[KnownChange]
) -> tuple[int, ...]:
    """Return the index of each known step's first point at the new level.

    Ramps are left out: a ramp is several splits, and no report named their places.
    """
    if not known:
        return ()
    points = _points(_runs_of(series, timeline))
    ends = (
        (points.get(change.sha_before), points.get(change.sha_after))
        for change in known
        if not change.withdrawn
    )
    return tuple(
        after
        for before, after in ends
        if before is not None and after is not None and 0 < after - before <= LONGEST_STEP
    )


def _significant(
    series: Sequence[Series], examined: Sequence[tuple[Move, ...]], settings: TrendSettings
) -> list[list[tuple[Move, float]]]:
    """Return, for each series, the moves whose q over all series is small enough, with the q.

    Each examined series counts as one test, and each further move in a series as another.
    """
    long_enough = sum(len(each.values) >= SHORTEST_SERIES for each in series)
    further = sum(max(0, len(moves) - 1) for moves in examined)
    q_values = iter(
        benjamini_hochberg([move.p for moves in examined for move in moves], long_enough + further)
    )
    with_q = [[(move, next(q_values)) for move in moves] for moves in examined]
    return [[(move, q) for move, q in moves if q <= settings.false_discoveries] for moves in with_q]


def _changes(
    series: Series,
    timeline: Timeline,
    significant: Sequence[tuple[Move, float]],
    known: Sequence[KnownChange],
    now: str,
) -> tuple[Change, ...]:
    runs = _runs_of(series, timeline)
    new = [
        _new_change(series, runs, move, q, timeline.dates[int(series.rows[move.after])], now)
        for move, q in significant
    ]
    matched = match_known(new, known, _points(runs) if known else {})
    changes = []
    for index, change in enumerate(new):
        earlier = matched.get(index)
        made = replace(change, status=_status(change, new[index + 1 :], earlier))
        if earlier:
            first_seen = earlier.first_seen_at
            made = replace(made, id=earlier.id, first_seen_at=first_seen, note=earlier.note)
        changes.append(made)
    return tuple(changes)


def _new_change(
    series: Series, runs: Sequence[RunHeader], move: Move, q: float, at: str, now: str
) -> Change:
    before, after = runs[move.before], runs[move.after]
    first, last = move.within
    names = _names_of_ends(before, after)
    return Change(
        **inherited(Move, move),
        id=digest(*series.key, *names)[:12],
        series=series.key,
        commits=(before.sha, after.sha),
        commits_within=(runs[first].sha, runs[last].sha),
        names=names,
        at=at,
        q=q,
        worse=move.difference > 0.0 if series.direction == "lower" else move.difference < 0.0,
        first_seen_at=now,
        # the place is within first..last, give or take a point
        benchmark_changed=any(first <= index <= last + 1 for index in series.source_changes),
    )


def _runs_of(series: Series, timeline: Timeline) -> list[RunHeader]:
    return [timeline.runs[row] for row in series.rows.tolist()]


def _points(runs: Sequence[RunHeader]) -> dict[str, int]:
    """Return the index of each commit's first point, by sha, and of each run's point, by run id."""
    points: dict[str, int] = {}
    for index, run in enumerate(runs):
        points.setdefault(run.sha or run.id, index)
        points[run.id] = index
    return points


def _names_of_ends(before: RunHeader, after: RunHeader) -> tuple[str, str]:
    """Return the names of a change's two ends: its commits, or its runs if those share a commit."""
    if before.sha and before.sha == after.sha:
        return before.id, after.id
    return before.sha or before.id, after.sha or after.id


def worst_first(change: Change) -> tuple[bool, float, SeriesKey, int]:
    """Return the sort key of a change: worse before better, then the largest first."""
    size = math.inf if change.ratio is None else abs(math.log(change.ratio))
    return (not change.worse, -size, change.series, change.before)


def match_known(
    changes: Sequence[Change], known: Sequence[KnownChange], points: Mapping[str, int]
) -> dict[int, KnownChange]:
    """Return, by index into ``changes``, the known change that each matches. The nearest wins.

    ``points`` maps each commit to the index of its first point in the series, and each run to the
    index of its point. Each known change is matched once.
    """
    claims = [
        (distance, number, index)
        for index, change in enumerate(changes)
        for number, candidate in enumerate(known)
        if candidate.worse == change.worse
        and (distance := _distance(change, candidate, points)) is not None
    ]
    return {index: known[number] for index, number in first_claims(claims).items()}


def first_claims(claims: Iterable[tuple[int, T, int]]) -> dict[int, T]:
    """Return the thing that each index gets from ``claims``, which are (cost, thing, index).

    The claims with the lowest cost go first. Each index gets one thing, and each thing is given
    once.
    """
    given: dict[int, T] = {}
    taken: set[T] = set()
    for _, thing, index in sorted(claims):
        if index not in given and thing not in taken:
            given[index] = thing
            taken.add(thing)
    return given


def _distance(change: Change, known: KnownChange, points: Mapping[str, int]) -> int | None:
    """Return the number of points between both changes, or None if they can't be the same change.

    Equal ids count as -1, and so win over equal commits (0).
    """
    if known.id == change.id:
        return -1
    ends = (known.sha_before, known.sha_after)
    if all(ends) and ends == change.names:
        return 0
    before, after = points.get(known.sha_before), points.get(known.sha_after)
    near = []
    if after is not None:
        near.append(abs(after - change.after))
    if before is not None:
        near.append(abs(before - change.before))
    if before is not None and after is not None and before < change.after and change.before < after:
        near.append(1)  # the ranges overlap: a ramp was a step before, or the reverse
    distance = min(near, default=WOBBLE + 1)
    may_be_there = after is not None and change.within[0] < after <= change.within[1]
    return distance if distance <= WOBBLE or may_be_there else None


def settled(changes: Sequence[Change], newest: str, days: int) -> tuple[Change, ...]:
    """Return a first report's changes. A change more than ``days`` before ``newest`` isn't new."""
    last = day_of(newest)
    first = None if last is None else last - days

    def is_old(change: Change) -> bool:
        day = day_of(change.at)
        return first is not None and day is not None and day < first

    return tuple(
        replace(each, status="known") if each.status == "new" and is_old(each) else each
        for each in changes
    )


def digest(*parts: str) -> str:
    """Return a hash, whose first digits are the id of a change or an event."""
    return hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()


def _status(change: Change, later: Sequence[Change], known: KnownChange | None) -> ChangeStatus:
    """Return the status of ``change``, which ``later`` changes of its series follow.

    ``fixed``: a later level has come back to the level before this change, or gone beyond it.
    """
    size = change.difference
    if size and any((each.level_after - change.level_before) / size <= BACK for each in later):
        return "fixed"
    if known is None:
        return "new"
    return "acknowledged" if known.acknowledged else "known"
