"""Which old runs to let go. Pure: the moment is handed in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from perfci.model.history import RunHeader
from perfci.trend.change import KnownChange
from perfci.trend.timeline.ordering import order_runs, whole_commits

KEEP_DAYS = 180
NEAR = 10


def superfluous(
    runs: Sequence[RunHeader],
    changes: Iterable[KnownChange],
    *,
    now: datetime,
    keep_days: int = KEEP_DAYS,
    near: int = NEAR,
) -> tuple[str, ...]:
    """Return the ids of one environment's runs that thinning removes.

    Of a branch's commits last measured more than ``keep_days`` ago, each week keeps its last. All
    runs of a commit stay or go together: they may be the shards of one. Always kept: a branch's
    first commit and its newest, and those within ``near`` commits of either end of a known change.
    Each branch is thinned alone: a pull request's runs must not stand for the default branch's.

    Days are counted back from ``now`` or from the newest run, whichever is earlier: a clock that
    jumped ahead would else make everything old.
    """
    ends = {end for change in changes for end in (change.sha_before, change.sha_after)}
    branches = [_commits(some) for some in _by_branch(runs)]
    by_commit: dict[str, list[RunHeader]] = {}
    for commits in branches:
        for name, some in commits.items():
            by_commit.setdefault(name, []).extend(some)
    measured = {name: _last(some) for name, some in by_commit.items()}
    times = [moment for moment in measured.values() if moment is not None]
    if not times:
        return ()
    horizon = min(now, max(times)) - timedelta(days=keep_days)
    kept: set[str] = set()
    for commits in branches:
        kept |= _one_a_week(commits, measured) | _around(commits, ends, near)
    return tuple(
        run.id
        for name, some in by_commit.items()
        for run in some
        if name not in kept and (moment := measured[name]) is not None and moment < horizon
    )


def _by_branch(runs: Sequence[RunHeader]) -> Iterable[list[RunHeader]]:
    branches: dict[str, list[RunHeader]] = {}
    for run in runs:
        branches.setdefault(run.branch, []).append(run)
    return branches.values()


def _commits(runs: Sequence[RunHeader]) -> dict[str, list[RunHeader]]:
    """Return the runs of each commit, in order; a run without one is a commit of its own."""
    commits: dict[str, list[RunHeader]] = {}
    for index in order_runs(runs, ranks={}).kept:
        commits.setdefault(runs[index].sha or runs[index].id, []).append(runs[index])
    return commits


def _one_a_week(
    commits: Mapping[str, list[RunHeader]], measured: Mapping[str, datetime | None]
) -> set[str]:
    """Return the first commit, the newest, and each week's last."""
    names = list(commits)
    week_kept: dict[tuple[int, int], str] = {}
    for name in names:
        if (moment := measured[name]) is not None:
            week_kept[moment.isocalendar()[:2]] = name
    return {*names[:1], *names[-1:], *week_kept.values()}


def _around(commits: Mapping[str, list[RunHeader]], ends: Collection[str], near: int) -> set[str]:
    """Return the commits near the ``ends`` of known changes, which are commits or runs."""
    names = list(commits)
    whole = whole_commits((run.sha for some in commits.values() for run in some), ends)
    places: dict[str, int] = {}
    for place, (name, some) in enumerate(commits.items()):
        places[whole.get(name, name)] = place
        places.update((run.id, place) for run in some)
    return {
        name
        for end in places.keys() & ends
        for name in names[max(0, places[end] - near) : places[end] + near + 1]
    }


def _last(runs: Sequence[RunHeader]) -> datetime | None:
    """Return when a commit was last measured; None, so that it is kept, where that isn't a time."""
    moments = []
    for run in runs:
        try:
            moment = datetime.fromisoformat(run.measured_at)
        except ValueError:
            return None
        moments.append(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    return max(moments)
