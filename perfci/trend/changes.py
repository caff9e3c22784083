"""Changes and drifts of a whole history: corrected over all series, and known ones found again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from perfci.model.run import RunHeader
from perfci.stats.evidence import benjamini_hochberg
from perfci.trend import (
    Change,
    ChangeStatus,
    Drift,
    KnownChange,
    Series,
    SeriesKey,
    Timeline,
    TrendSettings,
    dates_of,
)
from perfci.trend.change_points import (
    NOISY_SERIES,
    SHORTEST_SERIES,
    SizedMove,
    examine_all,
    ratio_of,
    too_few,
)
from perfci.trend.noise import cumulate, measure_blocks, prepare, stretch_variance
from perfci.units import counted, day_of

_CHUNK = 256
"""Series that go to a process at a time."""
WOBBLE = 3
"""Points by which a known change may move when newer runs come in, however sure its place is."""
BACK = 0.25
"""A later level has come back where it is within this share of the change from the old one."""
BASELINE_RUNS = 30
"""Runs that make an accepted level, against which the last days may have drifted."""
FEWEST_RUNS = 4
"""Least number of runs on each side of a drift."""


T = TypeVar("T", int, str)
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
    significant_moves = _significant(series, examined, settings)
    for entry, significant in zip(series, significant_moves, strict=True):
        if significant:
            known_here = by_series.get(entry.key, [])
            environment = entry.key.environment
            changes[entry.key] = _changes(
                entry, timelines[environment], dates[environment], significant, known_here, now
            )
            seen.update(change.id for change in changes[entry.key])
    drifts = find_drifts(series, timelines, changes, settings)
    short = frozenset(entry.key for entry in series if too_few(entry.values))
    return Analysis(
        changes=tuple(sorted(chain.from_iterable(changes.values()), key=worst_first)),
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
    """Return each series' moves. Series of one length share a process, where they cost less."""
    order = sorted(range(len(series)), key=lambda index: len(series[index].values))
    chunks = [
        [series[index].values for index in order[start : start + _CHUNK]]
        for start in range(0, len(order), _CHUNK)
    ]
    parts = run_all(partial(examine_all, settings=settings), chunks)
    moves_of: list[tuple[SizedMove, ...]] = [()] * len(series)
    for index, moves in zip(order, chain.from_iterable(parts), strict=True):
        moves_of[index] = moves
    return moves_of


def _significant(
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
    significant: Sequence[tuple[SizedMove, float]],
    known: Sequence[KnownChange],
    now: str,
) -> tuple[Change, ...]:
    runs = [timeline.runs[row] for row in series.rows.tolist()]
    moves = [move for move, _ in significant]
    new = [
        _new_change(series, runs, move, q, dates[int(series.rows[move.after])], now)
        for move, q in significant
    ]
    matched = match_known(new, known, _points(runs) if known else {})
    return tuple(
        _continued(change, status_of(index, moves, matched.get(index)), matched.get(index))
        for index, change in enumerate(new)
    )


def _continued(change: Change, status: ChangeStatus, known: KnownChange | None) -> Change:
    """Return ``change`` with the id, time and note of the known change that it is."""
    if known is None:
        return replace(change, status=status)
    seen_at, note = known.first_seen_at, known.note
    return replace(change, status=status, id=known.id, first_seen_at=seen_at, note=note)


def _new_change(
    series: Series, runs: Sequence[RunHeader], move: SizedMove, q: float, at: str, now: str
) -> Change:
    before, after = runs[move.before], runs[move.after]
    first, last = move.within
    names = _names_of_ends(before, after)
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
        at=at,
        ratio=move.ratio,
        ratio_lo=move.ratio_lo,
        ratio_hi=move.ratio_hi,
        difference=difference,
        p=move.p,
        q=q,
        worse=difference > 0.0 if series.direction == "lower" else difference < 0.0,
        first_seen_at=now,
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


def _names_of_ends(before: RunHeader, after: RunHeader) -> tuple[str, str]:
    """Return what names a change: its commits, or its runs where both are of one commit."""
    if before.sha and before.sha == after.sha:
        return before.id, after.id
    return before.sha or before.id, after.sha or after.id


def worst_first(change: Change) -> tuple[bool, float, SeriesKey, int]:
    """Return what sorts changes: worse before better, then the largest first."""
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
    claims = [
        (distance, number, index)
        for index, change in enumerate(changes)
        for number, candidate in enumerate(known)
        if candidate.worse == change.worse
        and (distance := _distance(change, candidate, points)) is not None
    ]
    return {index: known[number] for index, number in first_claims(claims).items()}


def first_claims(claims: Iterable[tuple[int, T, int]]) -> dict[int, T]:
    """Return what each index gets of (cost, thing, index), the lowest first and each thing once."""
    given: dict[int, T] = {}
    taken: set[T] = set()
    for _, thing, index in sorted(claims):
        if index not in given and thing not in taken:
            given[index] = thing
            taken.add(thing)
    return given


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
    """Return a first report's changes: those more than ``days`` before ``newest`` are not new."""
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
        if left <= BACK:
            return "fixed"
    if known is None:
        return "new"
    return "acknowledged" if known.acknowledged else "known"


@dataclass(frozen=True, slots=True)
class _DriftStretches:
    """Parts to compare: the accepted level from ``begin``, and the last days from ``recent`` on.

    They are indices into the series. ``steps`` are log ratios of the changes named since then. The
    first of these ends the accepted level before ``until``.
    """

    begin: int
    until: int
    recent: int
    steps: tuple[float, ...] = ()


def find_drifts(
    series: Sequence[Series],
    timelines: Mapping[str, Timeline],
    changes: Mapping[SeriesKey, tuple[Change, ...]],
    settings: TrendSettings,
) -> tuple[Drift, ...]:
    """Compare each series' last days with its last accepted level, the worst drift first.

    A level is accepted where it began with an acknowledged change or one for the better; before
    any of these it is how the series began.
    """
    days = settings.drift_days
    recents = {key: _recent_row(line, days) for key, line in timelines.items()}
    drifts = []
    for each in series:
        stretches = _stretches(each, recents[each.key.environment], changes.get(each.key, ()))
        drift = _drift(each, timelines[each.key.environment], stretches, settings)
        if drift is not None:
            drifts.append(drift)
    q_values = benjamini_hochberg([drift.q for drift in drifts], len(series))
    sure = [
        replace(drift, q=q)
        for drift, q in zip(drifts, q_values, strict=True)
        if q <= settings.false_discoveries
    ]
    return tuple(sorted(sure, key=lambda d: (not d.worse, -abs(math.log(d.ratio)), d.series)))


def drift_notes(
    series: Sequence[Series], timelines: Mapping[str, Timeline], settings: TrendSettings
) -> tuple[str, ...]:
    """Return a note where no drift can be tested: too few runs are older than the last days."""
    tested = {each.key.environment for each in series if len(each.values) >= NOISY_SERIES}
    days = settings.drift_days
    without = sum(_recent_row(timelines[key], days) < FEWEST_RUNS for key in tested)
    if not without:
        return ()
    where = (
        "" if without == len(tested) else f" on {without} of {counted(len(tested), 'environment')}"
    )
    few = f"fewer than {FEWEST_RUNS} runs are older than the last {days} days"
    return (f"No drift can be tested{where}: {few}.",)


def _recent_row(timeline: Timeline, days: int) -> int:
    """Return the first row from which on every run lies within ``days`` days of the last one.

    On a branch that rests, the last runs are of one commit, and stand at when they were measured.
    """
    known = [day_of(date) for date in dates_of(timeline)]
    newest = next((day for day in reversed(known) if day is not None), 0)
    row = len(known)
    while row and (day := known[row - 1]) is not None and day > newest - days:
        row -= 1
    return row


def _stretches(series: Series, recent_row: int, changes: Sequence[Change]) -> _DriftStretches:
    import numpy as np

    accepted = [c.after for c in changes if not c.worse or c.status == "acknowledged"]
    begin = max(accepted, default=0)
    since = [c for c in changes if c.after > begin]
    return _DriftStretches(
        begin=begin,
        until=min((c.before + 1 for c in since), default=len(series.rows)),
        recent=max(
            int(np.searchsorted(series.rows, recent_row)), max((c.after for c in since), default=0)
        ),
        steps=tuple(math.log(c.ratio) for c in since if c.ratio is not None),
    )


def _drift(
    series: Series, timeline: Timeline, stretches: _DriftStretches, settings: TrendSettings
) -> Drift | None:
    """Return the drift of the last days with its p as ``q``, or None for a small one.

    Changes that were reported since the accepted level are subtracted first. The rest is a drift
    if it is more than ``drift_floor``.

    Notes
    -----
    Student's t on what is left, each mean with the series' variance, inflated for
    AR(1), and the wander on top; no search, as both stretches are given.
    """
    from scipy import special

    values = series.values
    end = min(stretches.begin + BASELINE_RUNS, stretches.until, stretches.recent)
    count, recent = end - stretches.begin, len(values) - stretches.recent
    if (
        min(count, recent) < FEWEST_RUNS
        or (lowest := values.min()) <= 0.0
        or lowest == values.max()
    ):
        return None
    first, last = values[stretches.begin : end].mean(), values[stretches.recent :].mean()
    smallest = math.log1p(settings.drift_floor)
    if abs(math.log(last / first) - math.fsum(stretches.steps)) < smallest / 2:
        return None  # less than half the floor: spare the rest
    prepared = prepare(values)
    sums = cumulate(prepared.cleaned)
    difference = sums.mean(stretches.recent, len(values)) - sums.mean(stretches.begin, end)
    unexplained = difference - math.fsum(stretches.steps)
    if abs(difference) < smallest or abs(unexplained) < smallest:
        return None
    wander = measure_blocks(prepared, sums.values).wander()
    accepted, accepted_df = stretch_variance(prepared, sums, stretches.begin, end)
    newest, newest_df = stretch_variance(prepared, sums, stretches.recent, len(values))
    wandered = wander.variance(count, recent)
    variance = accepted + newest + wandered
    df = variance**2 / (accepted**2 / accepted_df + newest**2 / newest_df + wandered**2 / wander.df)
    error = math.sqrt(variance)
    half = float(special.stdtrit(df, 0.975)) * error
    ratio = ratio_of(difference)
    return Drift(
        series=series.key,
        baseline_sha=timeline.runs[int(series.rows[stretches.begin])].sha,
        days=settings.drift_days,
        points=recent,
        ratio=ratio,
        ratio_lo=ratio_of(difference - half),
        ratio_hi=ratio_of(difference + half),
        q=2.0 * float(special.stdtr(df, -abs(unexplained / error))),
        worse=(ratio > 1.0) == (series.direction == "lower"),
    )
