"""Changes of one place as one event: what code did, what the environment did, what came back."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from statistics import median_low
from typing import TYPE_CHECKING, Any

from perfci.trend.change import Change, Event, Evidence, KnownChange
from perfci.trend.noise import CRITICAL
from perfci.trend.series import Series, SeriesKey, Timeline, dates_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST = 0.5
"""Of an environment's series: where as many move at once, it may be the environment itself."""
FEWEST_SERIES = 5
"""Series: in fewer, most of them may well be of one cause in the code."""
ELSEWHERE = 0.1
"""Of the same series in another environment: where no more moved, it was not the code."""
LONGEST_EXCURSION = 30
"""Runs: what comes back later is a regression that was fixed."""
LONG_RAMP = 7
"""Runs: a longer ramp is no event of one night, and is grouped with ramps alone."""
_BACK = 0.25
"""As in ``matching``: of the change, what may be left of it when it has come back."""
OWN_PLACE = 10.0
"""What a place costs, as twice a log likelihood: more than a change gains by moving to the edge of
its 95 % range (7.35), so that one alone joins others there, and two or three keep their own."""
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class _Placed:
    """A change with its rows, and those between which it may be."""

    change: Change
    rows: tuple[int, int]
    span: Span

    @property
    def long(self) -> bool:
        return self.change.kind == "ramp" and self.rows[1] - self.rows[0] > LONG_RAMP


def group_events(
    changes: Sequence[Change],
    series: Sequence[Series],
    timelines: Mapping[str, Timeline],
    known: Iterable[KnownChange] = (),
) -> tuple[Event, ...]:
    """Return the events that ``changes`` are of, the newest first. Each change is in one.

    ``known`` are the changes that earlier reports named: their events keep their ids.
    """
    by_key = {one.key: one for one in series}
    placed: dict[str, list[_Placed]] = {}
    for change in changes:
        at = _placed(change, by_key[change.series])
        placed.setdefault(change.series.environment, []).append(at)
    surroundings = _Surroundings(series, timelines, placed)
    events: list[Event] = []
    for environment, some in placed.items():
        grouped = [
            _event(environment, place, members, surroundings)
            for long in (False, True)
            for place, members in _grouped([one for one in some if one.long is long])
        ]
        events += _with_excursions(grouped)
    events = _with_known_ids(events, {one.id: one.event for one in known if one.event})
    return tuple(sorted(events, key=_newest_first, reverse=True))


def _placed(change: Change, series: Series) -> _Placed:
    rows = series.rows
    lo, before, after, hi = (
        int(rows[index])
        for index in (change.within[0], change.before, change.after, change.within[1])
    )
    ends = before, after
    if change.kind == "ramp":  # its middle is its place; one like it begins and ends near by
        middle, quarter = (before + after) // 2, max(1, (after - before) // 4)
        if after - before > LONG_RAMP:
            lo, hi = middle - quarter, middle + quarter
        before, after = max(lo, middle - 1), min(hi, middle + 1)
    return _Placed(change, ends, Span(min(lo, before), before, after, max(hi, after)))


def _grouped(some: Sequence[_Placed]) -> Iterator[tuple[int, list[_Placed]]]:
    found: dict[int, list[_Placed]] = {}
    for one, place in zip(some, common_places([one.span for one in some]), strict=True):
        found.setdefault(place, []).append(one)
    yield from found.items()


def _event(
    environment: str, place: int, members: Sequence[_Placed], surroundings: _Surroundings
) -> Event:
    runs = surroundings.timelines[environment].runs
    rows = _common_rows(place, members)
    keys = {one.change.series for one in members}
    measured = surroundings.measured(environment, rows)
    evidence = tuple(surroundings.evidence(environment, rows, keys, measured))
    return Event(
        id=event_id(environment, members[0].change.id),
        kind="environment" if evidence else "code",
        environment=environment,
        changes=tuple(one.change for one in members),
        back=(),
        rows=rows,
        commits=(runs[rows[0]].sha, runs[rows[1]].sha),
        at=surroundings.dates[environment][rows[1]],
        ended_at="",
        measured=measured,
        evidence=evidence,
    )


def _common_rows(place: int, members: Sequence[_Placed]) -> tuple[int, int]:
    """Return the narrowest range around ``place``: where no run is missing, a single step."""
    if any(one.long for one in members):
        ends = [median_low(one.rows[side] for one in members) for side in (0, 1)]
        return ends[0], ends[1]
    spans = [one.span for one in members if one.span.before < place <= one.span.after]
    before = max((span.before for span in spans), default=place - 1)
    return before, min((span.after for span in spans), default=place)


class _Surroundings:
    """What else was measured when an event happened, there and in other environments."""

    def __init__(
        self,
        series: Sequence[Series],
        timelines: Mapping[str, Timeline],
        placed: Mapping[str, Sequence[_Placed]],
    ) -> None:
        import numpy as np

        self.timelines = timelines
        self.dates = {key: dates_of(timeline) for key, timeline in timelines.items()}
        self._reached = {key: tuple(accumulate(some, max)) for key, some in self.dates.items()}
        self._placed = placed
        self._series: dict[str, list[Series]] = {}
        for one in series:
            self._series.setdefault(one.key.environment, []).append(one)
        self._ends = {
            key: np.array([(one.rows[0], one.rows[-1]) for one in some])
            for key, some in self._series.items()
        }

    def measured(self, environment: str, rows: tuple[int, int]) -> int:
        """Return how many series of the environment were measured before and after."""
        first, last = self._ends[environment].T
        return int(((first <= rows[0]) & (rows[1] <= last)).sum())

    def evidence(
        self, environment: str, rows: tuple[int, int], keys: set[SeriesKey], measured: int
    ) -> Iterator[Evidence]:
        """Yield why it is the environment's; nothing where the code may have done it."""
        if len(keys) < max(FEWEST_SERIES, MOST * measured):
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
        """Whether another environment measured the same series over the same commits, in vain."""
        asked = False
        for other in self._series:
            if other == environment or not self._alike(environment, other):
                continue
            around = self._same_time(environment, other, rows)
            if around is None:
                continue
            there = {
                one.key
                for one in self._series[other]
                if (one.key.case, one.key.metric) in names and _spans(one, around)
            }
            if len(there) < max(FEWEST_SERIES, MOST * len(names)):
                continue
            asked = True
            moved = {
                one.change.series
                for one in self._placed.get(other, ())
                if one.change.series in there
                and one.span.lo < around[1]
                and around[0] < one.span.hi
            }
            if len(moved) > ELSEWHERE * len(there):
                return False
        return asked

    def _alike(self, one: str, other: str) -> bool:
        """Whether code that moves the one should move the other: both are of one kind of device."""
        facts, others = self.timelines[one].facts, self.timelines[other].facts
        return facts.get("device_name") == others.get("device_name")

    def _same_time(
        self, environment: str, other: str, rows: tuple[int, int]
    ) -> tuple[int, int] | None:
        """Return the rows of ``other`` around the same commits; None where it has none."""
        mine, its = self._reached[environment], self._reached[other]
        first = bisect_right(its, mine[rows[0]]) - 1
        last = bisect_left(its, mine[rows[1]])
        return (first, last) if 0 <= first < last < len(its) else None


def _spans(series: Series, rows: tuple[int, int]) -> bool:
    return bool(series.rows[0] <= rows[0] and rows[1] <= series.rows[-1])


def _with_excursions(events: Sequence[Event]) -> list[Event]:
    """Join what went away with what came back, where most of both are of the same series."""
    where = {id(change): index for index, event in enumerate(events) for change in event.changes}
    returns = _returns(change for event in events for change in event.changes)
    joined: dict[int, int] = {}
    for index, event in sorted(enumerate(events), key=lambda one: one[1].rows):
        if index in joined.values():
            continue  # what came back didn't go away by that
        ends = [where[id(back)] for one in event.changes if (back := returns.get(id(one)))]
        end = max(set(ends), key=ends.count, default=-1)
        if end >= 0 and end != index and end not in joined.values():
            most = max(len(event.changes), len(events[end].changes)) / 2
            runs = events[end].rows[1] - event.rows[1]
            if ends.count(end) >= most and 0 < runs <= LONGEST_EXCURSION:
                joined[index] = end
    ends_of_others = set(joined.values())
    return [
        _excursion(event, events[joined[index]]) if index in joined else event
        for index, event in enumerate(events)
        if index not in ends_of_others
    ]


def _returns(changes: Iterable[Change]) -> dict[int, Change]:
    """Return, by a change's ``id()``, the next one of its series where that takes it back."""
    by_series: dict[SeriesKey, list[Change]] = {}
    for change in changes:
        by_series.setdefault(change.series, []).append(change)
    found = {}
    for some in by_series.values():
        some.sort(key=lambda one: one.after)
        for out, back in pairwise(some):
            if abs(out.difference + back.difference) <= _BACK * abs(out.difference):
                found[id(out)] = back
    return found


def _excursion(out: Event, back: Event) -> Event:
    return replace(out, kind="excursion", back=back.changes, ended_at=back.at)


def event_id(environment: str, change: str) -> str:
    """Return twelve characters that name an event, of the worst change it was first told with."""
    text = f"event\n{environment}\n{change}"
    return "e" + hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:11]


def _with_known_ids(events: Sequence[Event], remembered: Mapping[str, str]) -> list[Event]:
    """Give each event the id that most of its changes had; one that came apart, to its largest."""
    claims = []
    for index, event in enumerate(events):
        had = Counter(remembered.get(change.id, "") for change in event.changes)
        claims += [(-count, id_, index) for id_, count in had.items() if id_]
    found: dict[int, str] = {}
    taken: set[str] = set()
    for _, id_, index in sorted(claims):
        if index not in found and id_ not in taken:
            found[index] = id_
            taken.add(id_)
    return [replace(one, id=found.get(index, one.id)) for index, one in enumerate(events)]


def _newest_first(event: Event) -> tuple[str, int, str, tuple[int, int]]:
    return event.at, event.series, event.environment, event.rows


@dataclass(frozen=True, slots=True)
class Span:
    """Where a change may be, in rows: its first new one is after ``lo``, at ``hi`` at the latest.

    ``before`` and ``after`` are the same where it fits best.
    """

    lo: int
    before: int
    after: int
    hi: int


def common_places(spans: Sequence[Span]) -> list[int]:
    """Return for each span the row at which it is most likely to begin, shared as widely as may be.

    Notes
    -----
    A span bears a place as a parabola of the log likelihood would: nothing between ``before`` and
    ``after``, ``CRITICAL`` at the ends. Places are opened one by one, the one that lowers the sum
    of all costs most first (greedy facility location), and each span goes to its cheapest.
    """
    import numpy as np

    if not spans:
        return []
    profiles, which = np.unique(
        np.array([(one.lo, one.before, one.after, one.hi) for one in spans], dtype=np.int64),
        axis=0,
        return_inverse=True,
    )
    weights = np.bincount(which.ravel(), minlength=len(profiles))
    costs = [_costs(*profile) for profile in profiles.tolist()]
    lo, hi = profiles[:, 0], profiles[:, 3]
    gains = np.zeros(int(hi.max()) + 1)
    for index, cost in enumerate(costs):
        gains[lo[index] + 1 : hi[index] + 1] += weights[index] * (OWN_PLACE - cost)
    now = np.full(len(profiles), OWN_PLACE)
    chosen = np.full(len(profiles), -1)
    while (chosen < 0).any() or gains.max() > OWN_PLACE + _ROUNDING:
        place = int(gains.argmax())
        for index in np.flatnonzero((lo < place) & (place <= hi)).tolist():
            cost = costs[index]
            better = float(cost[place - lo[index] - 1])
            if better >= now[index]:
                continue
            change = np.maximum(0.0, better - cost) - np.maximum(0.0, now[index] - cost)
            gains[lo[index] + 1 : hi[index] + 1] += weights[index] * change
            now[index], chosen[index] = better, place
    return [int(chosen[index]) for index in which.ravel().tolist()]


def _costs(lo: int, before: int, after: int, hi: int) -> NDArray[Any]:
    """Return what each row from ``lo + 1`` to ``hi`` costs as the place."""
    import numpy as np

    rows = np.arange(lo + 1, hi + 1, dtype=np.float64)
    left = np.maximum(0.0, before + 1 - rows) / max(1, before - lo)
    right = np.maximum(0.0, rows - after) / max(1, hi - after)
    off: NDArray[Any] = CRITICAL * np.maximum(left, right) ** 2
    return off
