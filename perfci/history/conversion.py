"""Pure: convert a run and a report into the history's records, and choose old runs to remove."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from perfci.metrics import METRICS
from perfci.model.case import Failure, Metric
from perfci.model.report import Report
from perfci.model.run import CaseRun, GateOutcome, Point, RecordedRun, Run, RunHeader
from perfci.stats.evidence import summarise
from perfci.stats.quantile import upper_median
from perfci.trend import KnownChange
from perfci.trend.timelines import order_runs, whole_commits

_ID_DIGITS = 32
_END_OF_KIND = ": "
"""Separates kind and message in the field that stores why a case has no points."""


def recorded_run(
    run: Run,
    *,
    source: str,
    runner: str,
    subject: str = "",
    branch: str = "",
    committed_at: str = "",
    position: int | None = None,
) -> RecordedRun:
    """Return ``run`` for the history: each case's metrics, and why a failed case has no metrics.

    The id is a hash of the commit, the machine, the moment and every value. So the same run gets
    the same id wherever it is recorded, and each shard of a session gets its own.
    """
    # the side is hashed, too: a commit measured against itself is two runs at one moment
    sided = [(case, point) for case in run.cases for point in _points(case)]
    failed = {failure.case: failed_field([failure]) for failure in run.failures} | {
        case.case.id: failed_field(case.failures) for case in run.cases if case.failures
    }
    return RecordedRun(
        id=_digest(
            "run",
            run.side.sha,
            run.environment.key,
            run.created_at,
            runner,
            [
                [case.workers[0].side, point.case, point.metric, point.value, list(point.values)]
                for case, point in sided
            ],
            sorted(failed.items()),
        ),
        source=source,
        sha=run.side.sha,
        subject=subject,
        branch=branch,
        committed_at=committed_at,
        measured_at=run.created_at,
        position=position,
        environment=run.environment,
        runner=runner,
        points=tuple(point for _, point in sided),
        source_hashes={
            case.case.id: case.case.source_hash
            for case in run.cases
            if case.workers and not case.failures
        },
        failed=failed,
    )


def failed_field(failures: Iterable[Failure]) -> str:
    """Return the text that the history stores for a case's failures."""
    return "; ".join(f"{failure.kind}{_END_OF_KIND}{failure.message}" for failure in failures)


def kind_of_field(stored: str) -> str:
    """Return the kind of the first failure that ``failed_field`` stored."""
    return stored.partition(_END_OF_KIND)[0]


def outcome_of(report: Report, *, runner: str) -> GateOutcome | None:
    """Return how ``report`` ended. None if it compared nothing, was cut short or tests the gate."""
    if report.base is None or report.injected or report.interrupted:
        return None
    gating = [row for row in report.results if row.gate == "fail" and row.method != "none"]
    return GateOutcome(
        id=_digest(
            "outcome",
            report.command,
            report.created_at,
            report.environment.key,
            runner,
            report.base.sha,
            report.head.sha,
            report.shard,
            [[row.case, row.metric, row.status, row.ratio, row.difference] for row in gating],
        ),
        command=report.command,
        created_at=report.created_at,
        environment=report.environment.key,
        runner=runner,
        base_sha=report.base.sha,
        head_sha=report.head.sha,
        same=report.base.sha == report.head.sha and report.base.python == report.head.python,
        verdict=report.verdict.status,
        comparisons=len(gating),
        regressed=sum(row.status == "regressed" for row in gating),
        inconclusive=sum(row.status == "inconclusive" for row in gating),
    )


def _points(case: CaseRun) -> Iterable[Point]:
    """Yield a case's points. A failed case has no points: some workers aren't a measurement."""
    if case.failures:
        return
    for metric in _metrics(case):
        values = tuple(
            float(worker.values[metric.name])
            for worker in case.workers
            if math.isfinite(worker.values.get(metric.name, math.nan))
        )
        if values:
            center = _center(metric, values)
            yield Point(case.case.id, metric.name, metric.unit, center, values, metric.direction)


def _center(metric: Metric, values: Sequence[float]) -> float:
    """Return the centre that a report shows of the same values. For counts it is a seen value."""
    if metric.kind == "exact":
        return upper_median(values)
    center = summarise(values, logarithmic=not metric.absolute).center
    assert center is not None  # noqa: S101 (there are values, and all are finite)
    return center


def _metrics(case: CaseRun) -> Iterable[Metric]:
    known = dict(METRICS)
    for worker in case.workers:
        known |= {own.name: own for own in worker.extra_metrics if own.name not in METRICS}
    present = {name for worker in case.workers for name in worker.values}
    return (metric for name, metric in known.items() if name in present)


def _digest(*parts: Any) -> str:
    text = json.dumps(parts, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]


def superfluous(
    runs: Sequence[RunHeader],
    changes: Iterable[KnownChange],
    *,
    now: datetime,
    keep_days: int,
    near: int = 10,
) -> tuple[str, ...]:
    """Return the ids of one environment's runs that thinning removes.

    Only commits last measured more than ``keep_days`` ago are removed. Of these, the last commit of
    each week is kept. All runs of a commit stay or go together: they may be shards of one session.
    Always kept are a branch's first and newest commit, and the commits within ``near`` commits of
    either end of a known change. Each branch is thinned separately: a pull request's runs must not
    replace the default branch's.

    Days are counted back from ``now`` or from the newest run, whichever is earlier. Otherwise a
    clock that jumped ahead would make everything old.
    """
    ends = {end for change in changes for end in (change.sha_before, change.sha_after)}
    by_branch: dict[str, list[RunHeader]] = {}
    for run in runs:
        by_branch.setdefault(run.branch, []).append(run)
    branches = [_commits(branch_runs) for branch_runs in by_branch.values()]
    by_commit: dict[str, list[RunHeader]] = {}
    for commits in branches:
        for name, commit_runs in commits.items():
            by_commit.setdefault(name, []).extend(commit_runs)
    measured = {name: _last(commit_runs) for name, commit_runs in by_commit.items()}
    times = [moment for moment in measured.values() if moment is not None]
    if not times:
        return ()
    horizon = min(now, max(times)) - timedelta(days=keep_days)
    kept: set[str] = set()
    for commits in branches:
        kept |= _one_a_week(commits, measured) | _around(commits, ends, near)
    return tuple(
        run.id
        for name, commit_runs in by_commit.items()
        for run in commit_runs
        if name not in kept and (moment := measured[name]) is not None and moment < horizon
    )


def _commits(runs: Sequence[RunHeader]) -> dict[str, list[RunHeader]]:
    """Return the runs of each commit, in order. A run without a commit counts as its own commit."""
    commits: dict[str, list[RunHeader]] = {}
    for index in order_runs(runs, ranks={}).kept:
        commits.setdefault(runs[index].sha or runs[index].id, []).append(runs[index])
    return commits


def _one_a_week(
    commits: Mapping[str, list[RunHeader]], measured: Mapping[str, datetime | None]
) -> set[str]:
    """Return the first commit, the newest commit, and the last commit of each week."""
    names = list(commits)
    week_kept: dict[tuple[int, int], str] = {}
    for name in names:
        if (moment := measured[name]) is not None:
            week_kept[moment.isocalendar()[:2]] = name
    return {*names[:1], *names[-1:], *week_kept.values()}


def _around(commits: Mapping[str, list[RunHeader]], ends: Collection[str], near: int) -> set[str]:
    """Return the commits near the ``ends`` of known changes, which are commits or runs."""
    names = list(commits)
    runs = chain.from_iterable(commits.values())
    whole = whole_commits((run.sha for run in runs), ends)
    places: dict[str, int] = {}
    for place, (name, commit_runs) in enumerate(commits.items()):
        places[whole.get(name, name)] = place
        places.update((run.id, place) for run in commit_runs)
    return {
        name
        for end in places.keys() & ends
        for name in names[max(0, places[end] - near) : places[end] + near + 1]
    }


def _last(runs: Sequence[RunHeader]) -> datetime | None:
    """Return when a commit was last measured. None keeps the commit: a run's time can't be read."""
    moments = []
    for run in runs:
        try:
            moment = datetime.fromisoformat(run.measured_at)
        except ValueError:
            return None
        moments.append(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    return max(moments)
