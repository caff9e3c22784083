"""Pure: convert a run and a report into the history's records."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from perfci.metrics import METRICS
from perfci.model.case import Failure, Metric
from perfci.model.report import Report
from perfci.model.run import CaseRun, GateOutcome, Point, RecordedRun, Run
from perfci.stats.evidence import summarise
from perfci.stats.quantile import upper_median

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
                [case.workers[0].side, point.case, point.metric, point.value]
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
            yield Point(case.case.id, metric.name, metric.unit, center, metric.direction)


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
