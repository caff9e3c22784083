"""The whole analysis: series to changes and drifts, and known changes found again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from perfci.model.run import RunHeader
from perfci.stats.evidence import benjamini_hochberg
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


class Analysis(NamedTuple):
    """Result of an analysis: changes and drifts, the worst first, and notes for the reader.

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
) -> Analysis:
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
    for each, sure in zip(series, _surely(series, examined, settings), strict=True):
        if sure:
            known_of = by_series.get(each.key, [])
            environment = each.key.environment
            changes[each.key] = _changes(
                each, timelines[environment], dates[environment], sure, known_of, now
            )
            seen.update(change_of.id for change_of in changes[each.key])
    drifts = find_drifts(series, timelines, changes, settings)
    short = frozenset(each.key for each in series if too_few(each.values))
    return Analysis(
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
    moves_of: list[tuple[SizedMove, ...]] = [()] * len(series)
    for index, moves in zip(order, (each for part in parts for each in part), strict=True):
        moves_of[index] = moves
    return moves_of


def _surely(
    series: Sequence[Series], examined: Sequence[tuple[SizedMove, ...]], settings: TrendSettings
) -> list[list[tuple[SizedMove, float]]]:
    """Keep of each series the moves whose q, over all series, is small enough, with their q."""
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
    dates: Sequence[str],
    sure: Sequence[tuple[SizedMove, float]],
    known: Sequence[KnownChange],
    now: str,
) -> tuple[Change, ...]:
    runs = [timeline.runs[row] for row in series.rows.tolist()]
    moves = [move for move, _ in sure]
    new = [
        replace(
            _new_change(series, runs, move),
            at=dates[int(series.rows[move.after])],
            q=q,
            first_seen_at=now,
        )
        for move, q in sure
    ]
    matched = match_known(new, known, _points(runs) if known else {})
    changes = []
    for index, change in enumerate(new):
        same = matched.get(index)
        status = status_of(index, moves, same)
        changes.append(
            replace(
                change, status=status, id=same.id, first_seen_at=same.first_seen_at, note=same.note
            )
            if same
            else replace(change, status=status)
        )
    return tuple(changes)


def _new_change(series: Series, runs: Sequence[RunHeader], move: SizedMove) -> Change:
    before, after = runs[move.before], runs[move.after]
    first, last = move.within
    names = _between(before, after)
    difference = move.level_after - move.level_before
    return Change(
        id=change_id(series.key, *names),
        series=series.key,
        kind=move.kind,
        before=move.before,
        after=move.after,
        within=move.within,
        commits=(before.sha, after.sha),
        commits_within=(runs[first].sha, runs[last].sha),
        names=names,
        at="",
        ratio=move.ratio,
        ratio_lo=move.ratio_lo,
        ratio_hi=move.ratio_hi,
        difference=difference,
        p=move.p,
        q=move.p,
        worse=difference > 0.0 if series.direction == "lower" else difference < 0.0,
        # give or take a point
        benchmark_changed=any(first <= index <= last + 1 for index in series.source_changes),
    )


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
    keys = {each.key for each in series}
    lost = sum(each.series in keys and each.id not in seen for each in known)
    if lost:
        changes = "1 known change is" if lost == 1 else f"{lost} known changes are"
        notes.append(f"{changes} no longer seen in what is now recorded.")
    return tuple(notes)


def match_known(
    changes: Sequence[Change], known: Sequence[KnownChange], points: Mapping[str, int]
) -> dict[int, KnownChange]:
    """Return, by index into ``changes``, the known change that each is. The nearest goes first.

    ``points`` maps a commit to the index of its first point in the series, and a run to that of
    its own. Each known change is matched once.
    """
    pairs = []
    for index, change in enumerate(changes):
        for number, candidate in enumerate(known):
            if candidate.worse != change.worse:
                continue
            distance = _distance(change, candidate, points)
            if distance is not None:
                pairs.append((distance, number, index))
    matched: dict[int, KnownChange] = {}
    taken: set[int] = set()
    for _, number, index in sorted(pairs):
        if index not in matched and number not in taken:
            matched[index] = known[number]
            taken.add(number)
    return matched


def _distance(change: Change, known: KnownChange, points: Mapping[str, int]) -> int | None:
    """Return the points between both, or None where they are too far apart to be the same.

    The id is compared before the commits. Several steps may lie between runs of one commit, and
    earlier versions remembered only that commit, twice.
    """
    if known.id == change.id:
        return -1
    ends = (known.sha_before, known.sha_after)
    if all(ends) and ends in {change.names, change.commits}:
        return 0
    before, after = points.get(known.sha_before), points.get(known.sha_after)
    near = []
    if after is not None:
        near.append(abs(after - change.after))
    if before is not None:
        near.append(abs(before - change.before))
    if before is not None and after is not None and before < change.after and change.before < after:
        near.append(1)  # the ranges overlap, as of a ramp that was a step, or the reverse
    distance = min(near, default=WOBBLE + 1)
    may_be_there = after is not None and change.within[0] < after <= change.within[1]
    return distance if distance <= WOBBLE or may_be_there else None


def settled(changes: Sequence[Change], newest: str, days: int) -> tuple[Change, ...]:
    """Return the changes of a first report: what moved ``days`` before ``newest`` is not new."""
    last = day_of(newest)
    first = None if last is None else last - days

    def is_old(change: Change) -> bool:
        day = day_of(change.at)
        return first is not None and day is not None and day < first

    return tuple(
        replace(each, status="known") if each.status == "new" and is_old(each) else each
        for each in changes
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
