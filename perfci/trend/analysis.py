"""The whole analysis: series and what is known of them to changes, drifts and notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from perfci.model.history import RunHeader
from perfci.stats.multiple_testing import benjamini_hochberg
from perfci.trend.change import Change, Drift, KnownChange
from perfci.trend.detect.drift import drift_notes, find_drifts
from perfci.trend.detect.moves import (
    NOISY_SERIES,
    SHORTEST_SERIES,
    SizedMove,
    examine_all,
    too_few,
)
from perfci.trend.matching import Place, change_id, match_known, status_of
from perfci.trend.settings import TrendSettings
from perfci.trend.timeline.series import Series, SeriesKey, Timeline, dates_of

RunAll = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

_CHUNK = 256
"""Series that go to a process at a time."""


class Analysed(NamedTuple):
    """What an analysis found: changes and drifts, the worst first, and notes for the reader.

    The series in ``too_few`` are too short to be examined.
    """

    changes: tuple[Change, ...]
    drifts: tuple[Drift, ...]
    notes: tuple[str, ...]
    too_few: frozenset[SeriesKey] = frozenset()


def analyse(
    series: Sequence[Series],
    timelines: Mapping[str, Timeline],
    *,
    known: Sequence[KnownChange] = (),
    now: str,
    settings: TrendSettings | None = None,
    run_all: RunAll = map,
) -> Analysed:
    """Find what moved. ``run_all`` maps chunks of series, like ``map`` or a process pool's.

    ``known`` are the changes that earlier reports named: they keep their ids.
    """
    settings = settings or TrendSettings()
    examined = _examined(series, settings, run_all)
    by_series: dict[SeriesKey, list[KnownChange]] = {}
    for change in known:
        by_series.setdefault(change.series, []).append(change)
    dates = {key: dates_of(timeline) for key, timeline in timelines.items()}
    seen: set[str] = set()
    changes: dict[SeriesKey, tuple[Change, ...]] = {}
    for one, sure in zip(series, _surely(series, examined, settings), strict=True):
        if sure:
            mine = by_series.get(one.key, [])
            environment = one.key.environment
            changes[one.key] = _changes(
                one, timelines[environment], dates[environment], sure, mine, now
            )
            seen.update(found.id for found in changes[one.key])
    drifts = find_drifts(series, timelines, changes, settings)
    short = frozenset(one.key for one in series if too_few(one.values))
    return Analysed(
        changes=tuple(sorted((c for some in changes.values() for c in some), key=_worst_first)),
        drifts=drifts,
        notes=(
            *_notes(series, len(short), known, seen),
            *drift_notes(series, timelines, settings),
        ),
        too_few=short,
    )


def _examined(
    series: Sequence[Series], settings: TrendSettings, run_all: RunAll
) -> list[tuple[SizedMove, ...]]:
    """Return each series' moves; those of one length go to one process, as they cost less so."""
    order = sorted(range(len(series)), key=lambda index: len(series[index].values))
    chunks = [
        [series[index].values for index in order[start : start + _CHUNK]]
        for start in range(0, len(order), _CHUNK)
    ]
    parts = run_all(partial(examine_all, settings=settings), chunks)
    found: list[tuple[SizedMove, ...]] = [()] * len(series)
    for index, moves in zip(order, (one for part in parts for one in part), strict=True):
        found[index] = moves
    return found


def _surely(
    series: Sequence[Series], examined: Sequence[tuple[SizedMove, ...]], settings: TrendSettings
) -> list[list[tuple[SizedMove, float]]]:
    """Keep of each series the moves whose q, over all series, is small enough, with their q."""
    long_enough = sum(len(one.values) >= SHORTEST_SERIES for one in series)
    further = sum(max(0, len(found) - 1) for found in examined)
    q_values = iter(
        benjamini_hochberg([move.p for found in examined for move in found], long_enough + further)
    )
    with_q = [[(move, next(q_values)) for move in found] for found in examined]
    return [[(move, q) for move, q in found if q <= settings.false_discoveries] for found in with_q]


def _changes(
    series: Series,
    timeline: Timeline,
    dates: Sequence[str],
    sure: Sequence[tuple[SizedMove, float]],
    known: Sequence[KnownChange],
    now: str,
) -> tuple[Change, ...]:
    runs = [timeline.runs[row] for row in series.rows.tolist()]
    moves = [move for move, _ in sure]
    sign = 1.0 if series.direction == "lower" else -1.0
    names = [_between(runs[move.before], runs[move.after]) for move in moves]
    places = [
        Place(
            change_id(series.key, *ends),
            move.before,
            move.after,
            move.within,
            (runs[move.before].sha, runs[move.after].sha),
            ends,
            sign * (move.level_after - move.level_before) > 0.0,
        )
        for move, ends in zip(moves, names, strict=True)
    ]
    matched = match_known(places, known, _points(runs) if known else {})
    made = []
    for index, ((move, q), place) in enumerate(zip(sure, places, strict=True)):
        found = matched.get(index)
        made.append(
            Change(
                id=found.id if found else place.id,
                series=series.key,
                kind=move.kind,
                before=move.before,
                after=move.after,
                within=move.within,
                commits=place.commits,
                commits_within=(runs[move.within[0]].sha, runs[move.within[1]].sha),
                names=place.names,
                at=dates[int(series.rows[move.after])],
                ratio=move.ratio,
                ratio_lo=move.ratio_lo,
                ratio_hi=move.ratio_hi,
                difference=move.level_after - move.level_before,
                p=move.p,
                q=q,
                worse=place.worse,
                status=status_of(index, moves, found),
                first_seen_at=found.first_seen_at if found else now,
                note=found.note if found else "",
                benchmark_changed=_benchmark_changed(series, move),
            )
        )
    return tuple(made)


def _points(runs: Sequence[RunHeader]) -> dict[str, int]:
    """Return where each commit's first point is, and where each run's."""
    points: dict[str, int] = {}
    for index, run in enumerate(runs):
        points.setdefault(run.sha or run.id, index)
        points[run.id] = index
    return points


def _between(before: RunHeader, after: RunHeader) -> tuple[str, str]:
    """Return what names a change: its commits, or its runs where both are of one commit."""
    if before.sha and before.sha == after.sha:
        return before.id, after.id
    return before.sha or before.id, after.sha or after.id


def _benchmark_changed(series: Series, move: SizedMove) -> bool:
    """Whether the benchmark's own source changed where it may lie, give or take a point."""
    first, last = move.within
    return any(first <= index <= last + 1 for index in series.source_changes)


def _worst_first(change: Change) -> tuple[bool, float, SeriesKey, int]:
    size = math.inf if change.ratio is None else abs(math.log(change.ratio))
    return (not change.worse, -size, change.series, change.before)


def _notes(
    series: Sequence[Series], short: int, known: Sequence[KnownChange], seen: set[str]
) -> tuple[str, ...]:
    notes = []
    if short:
        notes.append(
            f"{short:,} of {len(series):,} series have too few runs: {NOISY_SERIES} are "
            f"needed, {SHORTEST_SERIES} where nearly each run repeats the last value."
        )
    keys = {one.key for one in series}
    lost = sum(one.series in keys and one.id not in seen for one in known)
    if lost:
        changes = "1 known change is" if lost == 1 else f"{lost} known changes are"
        notes.append(f"{changes} no longer seen in what is now recorded.")
    return tuple(notes)
