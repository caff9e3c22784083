"""Group the changes at one place into an event: of code, of the environment, or an excursion."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from statistics import median_low

from perfci.trend import Change, Evidence, KnownChange, Series, SeriesKey, Timeline, TrendEvent
from perfci.trend.changes import BACK, digest, first_claims, worst_first

MOVED_SHARE = 0.5
"""Least share of an environment's series that move together if the environment itself changed."""
FEWEST_SERIES = 5
"""Least number of series that show a change of the environment. Fewer may share a cause in code."""
MOVED_ELSEWHERE_SHARE = 0.1
"""If at most this share of the same series moved elsewhere, the code is not the cause."""
LONGEST_EXCURSION = 30
"""Runs. A change that is taken back later than this is a regression that was fixed."""
LONG_RAMP = 7
"""Runs. A longer ramp didn't happen in one night, and is grouped only with other long ramps."""


@dataclass(frozen=True, slots=True)
class _PlacedChange:
    """A change, and the rows of the timeline where it may be.

    Its first new row is after ``lo``, and ``hi`` at the latest. By the best fit it is after
    ``before``, and ``after`` at the latest. ``ends`` are the rows of the change's own ends.
    """

    change: Change
    ends: tuple[int, int]
    lo: int
    before: int
    after: int
    hi: int

    @property
    def long(self) -> bool:
        return self.change.kind == "ramp" and self.ends[1] - self.ends[0] > LONG_RAMP


def group_events(
    changes: Sequence[Change],
    series: Sequence[Series],
    timelines: Mapping[str, Timeline],
    known: Iterable[KnownChange] = (),
) -> tuple[TrendEvent, ...]:
    """Return the events of ``changes``, the newest first. Each change is in one event.

    ``known`` are the changes that earlier reports named: their events keep their ids.
    """
    by_key = {entry.key: entry for entry in series}
    placed: dict[str, list[_PlacedChange]] = {}
    for change in changes:
        placed_change = _placed(change, by_key[change.series])
        placed.setdefault(change.series.environment, []).append(placed_change)
    surroundings = _EventContext(series, timelines, placed)
    events: list[TrendEvent] = []
    for environment, located in placed.items():
        grouped = [
            _event(environment, place, members, group, surroundings)
            for long in (False, True)
            for place, group in _grouped([change for change in located if change.long is long])
            for worse in (True, False)
            if (members := [member for member in group if member.change.worse is worse])
        ]
        events += _with_excursions(grouped)
    events = _with_known_ids(events, {change.id: change.event for change in known if change.event})
    events.sort(
        key=lambda event: (event.at, event.series, event.environment, event.rows), reverse=True
    )
    return tuple(events)


def _placed(change: Change, series: Series) -> _PlacedChange:
    rows = series.rows
    lo, before, after, hi = (
        int(rows[index])
        for index in (change.within[0], change.before, change.after, change.within[1])
    )
    ends = before, after
    if change.kind == "ramp":  # its place is its middle; that of a similar ramp may be a bit off
        middle, quarter = (before + after) // 2, max(1, (after - before) // 4)
        if after - before > LONG_RAMP:
            lo, hi = middle - quarter, middle + quarter
        before, after = max(lo, middle - 1), min(hi, middle + 1)
    # give or take a run: the mean of a case often moves a run before or after its median
    return _PlacedChange(change, ends, min(lo, before) - 1, before, after, max(hi, after) + 1)


def _grouped(changes: Sequence[_PlacedChange]) -> Iterator[tuple[int, list[_PlacedChange]]]:
    """Yield likely first new rows, each with the changes that share it.

    The best fit of most changes is taken first, with every change that may lie there, then that of
    most of the rest.
    """
    left = list(changes)
    while left:
        fits = Counter(change.after for change in left)
        place = min(fits, key=lambda row: (-fits[row], row))
        yield place, [change for change in left if change.lo < place <= change.hi]
        left = [change for change in left if not change.lo < place <= change.hi]


def _event(
    environment: str,
    place: int,
    members: Sequence[_PlacedChange],
    group: Sequence[_PlacedChange],
    surroundings: _EventContext,
) -> TrendEvent:
    """Return the event of ``members``: the changes in one direction, of all in ``group`` there."""
    runs = surroundings.timelines[environment].runs
    rows = _common_rows(place, members)
    keys = {member.change.series for member in group}
    changes = sorted((member.change for member in members), key=worst_first)
    measured = surroundings.measured(environment, rows)
    evidence = tuple(surroundings.evidence(environment, rows, keys, measured))
    return TrendEvent(
        id=f"e{digest('event', environment, changes[0].id)[:11]}",
        kind="environment" if evidence else "code",
        environment=environment,
        changes=tuple(changes),
        back=(),
        rows=rows,
        commits=(runs[rows[0]].sha, runs[rows[1]].sha),
        at=surroundings.timelines[environment].dates[rows[1]],
        ended_at="",
        measured=measured,
        evidence=evidence,
    )


def _common_rows(place: int, members: Sequence[_PlacedChange]) -> tuple[int, int]:
    """Return the narrowest range of rows around ``place`` that the members have in common.

    If no run is missing, it is one row and the next. The range of long ramps is the median of their
    ends.
    """
    if any(member.long for member in members):
        ends = [median_low(member.ends[side] for member in members) for side in (0, 1)]
        return ends[0], ends[1]
    there = [member for member in members if member.before < place <= member.after]
    before = max((member.before for member in there), default=place - 1)
    return before, min((member.after for member in there), default=place)


class _EventContext:
    """All series and changes, to see what moved at an event, in its environment and in others."""

    def __init__(
        self,
        series: Sequence[Series],
        timelines: Mapping[str, Timeline],
        placed: Mapping[str, Sequence[_PlacedChange]],
    ) -> None:
        import numpy as np

        self.timelines = timelines
        self._reached = {key: tuple(accumulate(each.dates, max)) for key, each in timelines.items()}
        self._placed = placed
        self._series: dict[str, list[Series]] = {}
        for entry in series:
            self._series.setdefault(entry.key.environment, []).append(entry)
        self._ends = {
            key: np.array([(entry.rows[0], entry.rows[-1]) for entry in series_there])
            for key, series_there in self._series.items()
        }

    def measured(self, environment: str, rows: tuple[int, int]) -> int:
        """Return the number of the environment's series that were measured on both sides."""
        first, last = self._ends[environment].T
        return int(((first <= rows[0]) & (rows[1] <= last)).sum())

    def evidence(
        self, environment: str, rows: tuple[int, int], keys: set[SeriesKey], measured: int
    ) -> Iterator[Evidence]:
        """Yield evidence that the environment is the cause. Yield nothing if the code may be."""
        if len(keys) < max(FEWEST_SERIES, MOVED_SHARE * measured):
            return
        runs = self.timelines[environment].runs
        before, after = runs[rows[0]], runs[rows[1]]
        if before.sha and before.sha == after.sha:
            yield "same_commit"
        if before.runner != after.runner:
            yield "runner"
        if self._unmoved_elsewhere(environment, rows, {(key.case, key.metric) for key in keys}):
            yield "unmoved_elsewhere"

    def _unmoved_elsewhere(
        self, environment: str, rows: tuple[int, int], names: set[tuple[str, str]]
    ) -> bool:
        """Return whether the same series did not move elsewhere over the same commits."""
        compared = False
        device = self.timelines[environment].facts.get("device_name")
        for other in self._series:
            facts = self.timelines[other].facts
            if other == environment or facts.get("device_name") != device:
                continue  # another kind of device need not show what the code did
            around = self._same_time(environment, other, rows)
            if around is None:
                continue
            there = {
                each.key
                for each in self._series[other]
                if (each.key.case, each.key.metric) in names
                and each.rows[0] <= around[0]
                and around[1] <= each.rows[-1]
            }
            if len(there) < max(FEWEST_SERIES, MOVED_SHARE * len(names)):
                continue
            compared = True
            moved = {
                each.change.series
                for each in self._placed.get(other, ())
                if each.change.series in there and each.lo < around[1] and around[0] < each.hi
            }
            if len(moved) > MOVED_ELSEWHERE_SHARE * len(there):
                return False
        return compared

    def _same_time(
        self, environment: str, other: str, rows: tuple[int, int]
    ) -> tuple[int, int] | None:
        """Return the rows of ``other`` around the same dates, or None if it has no such rows."""
        dates, other_dates = self._reached[environment], self._reached[other]
        first = bisect_right(other_dates, dates[rows[0]]) - 1
        last = bisect_left(other_dates, dates[rows[1]])
        return (first, last) if 0 <= first < last < len(other_dates) else None


def _with_excursions(events: Sequence[TrendEvent]) -> list[TrendEvent]:
    """Join an event with a later event that takes it back in most series: an excursion."""
    where = {id(change): index for index, event in enumerate(events) for change in event.changes}
    returns = _returns(change for event in events for change in event.changes)
    joined: dict[int, int] = {}
    for index, event in sorted(enumerate(events), key=lambda each: each[1].rows):
        if index in joined.values():
            continue  # it is itself the return from an excursion
        ends = [where[id(back)] for each in event.changes if (back := returns.get(id(each)))]
        end = max(set(ends), key=ends.count, default=-1)
        if end >= 0 and end != index and end not in joined.values():
            half = max(len(event.changes), len(events[end].changes)) / 2
            runs = events[end].rows[1] - event.rows[1]
            if ends.count(end) >= half and 0 < runs <= LONGEST_EXCURSION:
                joined[index] = end
    returned = set(joined.values())
    kept = [(event, joined.get(at)) for at, event in enumerate(events) if at not in returned]
    return [
        event
        if end is None
        else replace(event, kind="excursion", back=events[end].changes, ended_at=events[end].at)
        for event, end in kept
    ]


def _returns(changes: Iterable[Change]) -> dict[int, Change]:
    """Return, by a change's ``id()``, the next change of its series if that takes it back."""
    by_series: dict[SeriesKey, list[Change]] = {}
    for change in changes:
        by_series.setdefault(change.series, []).append(change)
    returns = {}
    for changes_of_one in by_series.values():
        changes_of_one.sort(key=lambda change: change.after)
        for out, back in pairwise(changes_of_one):
            if abs(out.difference + back.difference) <= BACK * abs(out.difference):
                returns[id(out)] = back
    return returns


def _with_known_ids(
    events: Sequence[TrendEvent], remembered: Mapping[str, str]
) -> list[TrendEvent]:
    """Give each event the id that most of its changes were remembered with.

    If an earlier event was split, the largest part gets its id.
    """
    claims = []
    for index, event in enumerate(events):
        had = Counter(remembered.get(change.id, "") for change in event.changes)
        claims += [(-count, id_, index) for id_, count in had.items() if id_]
    ids = first_claims(claims)
    return [replace(event, id=ids.get(index, event.id)) for index, event in enumerate(events)]
