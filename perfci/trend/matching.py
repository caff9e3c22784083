"""Finding known changes again although they wobble, and saying what became of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfci.model.instant import day_of
from perfci.trend.change import Change, ChangeStatus, KnownChange
from perfci.trend.detect.moves import SizedMove
from perfci.trend.timeline.series import SeriesKey

WOBBLE = 3
"""Points by which a known change may move when newer runs come in, however sure its place is."""

_BACK = 0.25
"""A later level has come back where it is within this share of the change from the old one."""


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
