"""The whole analysis: series to changes and drifts, and known changes found again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from perfci.model.run import RunHeader
from perfci.stats.levels import benjamini_hochberg
from perfci.trend.change import Change, ChangeStatus, Drift, KnownChange, TrendSettings
from perfci.trend.drift import drift_notes, find_drifts
from perfci.trend.moves import NOISY_SERIES, SHORTEST_SERIES, SizedMove, examine_all, too_few
from perfci.trend.series import Series, SeriesKey, Timeline, dates_of
from perfci.units import day_of

_CHUNK = 256
"""Series that go to a process at a time."""
WOBBLE = 3
"""Points by which a known change may move when newer runs come in, however sure its place is."""
_BACK = 0.25
"""A later level has come back where it is within this share of the change from the old one."""


RunAll = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


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


@dataclass(frozen=True, slots=True)
class Place:
    """A change of a series to be matched: where it is, between which commits, which way.

    ``within`` is (before, after) with 95 % confidence. ``id`` is what it is called if it is new,
    and ``names`` are its ends as ``KnownChange`` has them.
    """

    id: str
    before: int
    after: int
    within: tuple[int, int]
    commits: tuple[str, str]
    names: tuple[str, str]
    worse: bool


def match_known(
    places: Sequence[Place], known: Sequence[KnownChange], points: Mapping[str, int]
) -> dict[int, KnownChange]:
    """Return for each index into ``places`` the known change that it is, the nearest first.

    ``points`` maps a commit to the index of its first point in the series, and a run to that of
    its own. Each known change is matched once.
    """
    pairs = []
    for index, place in enumerate(places):
        for number, one in enumerate(known):
            if one.worse != place.worse:
                continue
            distance = _distance(place, one, points)
            if distance is not None:
                pairs.append((distance, number, index))
    matched: dict[int, KnownChange] = {}
    taken: set[int] = set()
    for _, number, index in sorted(pairs):
        if index not in matched and number not in taken:
            matched[index] = known[number]
            taken.add(number)
    return matched


def _distance(place: Place, known: KnownChange, points: Mapping[str, int]) -> int | None:
    """Points between a place and a known change; None where they are too far apart to be one.

    The id goes before the commits: several steps may lie between runs of one commit, and
    earlier versions remembered no more of such a step than that commit, twice.
    """
    if known.id == place.id:
        return -1
    ends = (known.sha_before, known.sha_after)
    if all(ends) and ends in {place.names, place.commits}:
        return 0
    before, after = points.get(known.sha_before), points.get(known.sha_after)
    near = []
    if after is not None:
        near.append(abs(after - place.after))
    if before is not None:
        near.append(abs(before - place.before))
    if before is not None and after is not None and before < place.after and place.before < after:
        near.append(1)  # the ranges overlap: a ramp was a step, or the other way about
    distance = min(near, default=WOBBLE + 1)
    may_be_there = after is not None and place.within[0] < after <= place.within[1]
    return distance if distance <= WOBBLE or may_be_there else None


def settled(changes: Sequence[Change], newest: str, days: int) -> tuple[Change, ...]:
    """Return the changes of a first report: what moved ``days`` before ``newest`` is not new."""
    last = day_of(newest)
    first = None if last is None else last - days

    def is_old(change: Change) -> bool:
        day = day_of(change.at)
        return first is not None and day is not None and day < first

    return tuple(
        replace(one, status="known") if one.status == "new" and is_old(one) else one
        for one in changes
    )


def change_id(series: SeriesKey, before: str, after: str) -> str:
    """Return twelve hex digits that name a change for good: of its series and its two commits."""
    text = "\n".join((*series, before, after))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def status_of(index: int, moves: Sequence[SizedMove], known: KnownChange | None) -> ChangeStatus:
    """Return the status of ``moves[index]``, one of all moves of its series in order.

    ``fixed``: a later level has come back to the one before this change, or gone beyond.
    """
    move = moves[index]
    size = move.level_after - move.level_before
    for later in moves[index + 1 :]:
        left = (later.level_after - move.level_before) / size if size else 1.0
        if left <= _BACK:
            return "fixed"
    if known is None:
        return "new"
    return "acknowledged" if known.acknowledged else "known"
