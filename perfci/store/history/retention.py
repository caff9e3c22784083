"""Which old runs to let go. Pure: the moment is handed in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from perfci.trend.change import KnownChange
from perfci.trend.ordering import order_nights
from perfci.trend.series import Night

KEEP_DAYS = 180
NEAR = 10


def superfluous(
    nights: Sequence[Night],
    changes: Iterable[KnownChange],
    *,
    now: datetime,
    keep_days: int = KEEP_DAYS,
    near: int = NEAR,
) -> tuple[str, ...]:
    """Return the ids of one environment's runs that thinning removes.

    Of commits last measured more than ``keep_days`` ago, each week keeps its last. All runs of
    a commit stay or go together: they may be the shards of one. Always kept: the first commit and
    the newest, and those within ``near`` commits of either end of a known change.

    Days are counted back from ``now`` or from the newest run, whichever is earlier: a clock that
    jumped ahead would else make everything old.
    """
    ordered = [nights[index] for index in order_nights(nights, ranks={}).kept]
    commits: dict[str, list[Night]] = {}
    for night in ordered:
        commits.setdefault(night.sha or night.run, []).append(night)
    names = list(commits)
    measured = {name: _last(runs) for name, runs in commits.items()}
    times = [moment for moment in measured.values() if moment is not None]
    if not times:
        return ()
    horizon = min(now, max(times)) - timedelta(days=keep_days)
    week_kept: dict[tuple[int, int], str] = {}
    for name in names:
        if (moment := measured[name]) is not None:
            week_kept[moment.isocalendar()[:2]] = name
    kept = {names[0], names[-1], *week_kept.values()} | _around(names, changes, near)
    return tuple(
        night.run
        for name in names
        for night in commits[name]
        if name not in kept and (moment := measured[name]) is not None and moment < horizon
    )


def _around(names: Sequence[str], changes: Iterable[KnownChange], near: int) -> set[str]:
    places = {name: place for place, name in enumerate(names)}
    ends = {end for change in changes for end in (change.sha_before, change.sha_after)}
    return {
        name
        for end in ends & places.keys()
        for name in names[max(0, places[end] - near) : places[end] + near + 1]
    }


def _last(runs: Sequence[Night]) -> datetime | None:
    """Return when a commit was last measured; None, so that it is kept, where that isn't a time."""
    moments = []
    for night in runs:
        try:
            moment = datetime.fromisoformat(night.measured_at)
        except ValueError:
            return None
        moments.append(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    return max(moments)
