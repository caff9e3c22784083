"""Runs of nights that nobody waits for: made from the planted truth, and marked as made.

    value = level × cost(commit) × exp(night) × exp(worker)

``level`` is the median, over the nights that were really measured, of what was measured ÷ its
commit's cost, so that made and measured nights are of one machine. ``night`` is the luck of
a night, which all benchmarks share in part: normal and autocorrelated (AR(1), ρ = 0.3), with the
standard deviation below. ``worker`` is normal with half of that. Costs count for latencies only.
The seed is fixed, so that the demo is the same each time, but for what was really measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import exp, sqrt
from random import Random
from statistics import median

from nightly.commits import OUTLIER, OUTLIER_SHARE, loops

from perfci.measure.checkout.commits import Commit
from perfci.model.run import Point, RecordedRun

SEED = 20260301
RHO = 0.3
WORKERS = 5
SPREAD = {
    "latency_p50": 0.010,
    "latency_mean": 0.012,
    "cold_start": 0.030,
    "peak_host_memory": 0.002,
}
"""The metrics that are replayed, and the standard deviation of a night's luck in each."""


def replayed(
    commits: Sequence[Commit], real: Sequence[RecordedRun], seed: int = SEED
) -> tuple[RecordedRun, ...]:
    """Return a run for each of ``commits`` (the oldest first) that has no ``real`` one."""
    rng = Random(seed)
    template = real[0]
    measured = {run.sha for run in real}
    numbers = {commit.sha: number for number, commit in enumerate(commits, start=1)}
    luck = {(point.case, point.metric): 0.0 for point in template.points}
    runs = []
    for number, commit in enumerate(commits, start=1):
        points = []
        for point in template.points:
            if point.metric not in SPREAD:
                continue
            key = (point.case, point.metric)
            fresh = rng.gauss(0.0, SPREAD[point.metric]) * sqrt(1.0 - RHO**2)
            luck[key] = RHO * luck[key] + fresh
            center = _level(real, numbers, point) * _cost(point, number) * exp(luck[key])
            if (point.case, number) == ("parse", OUTLIER) and point.metric.startswith("latency"):
                center *= 1.0 + OUTLIER_SHARE  # the machine was busy that night
            points.append(_point(point, center, rng))
        if commit.sha not in measured:
            runs.append(_run(template, commit, tuple(points)))
    return tuple(runs)


def _level(real: Sequence[RecordedRun], numbers: Mapping[str, int], wanted: Point) -> float:
    return median(
        point.value / _cost(point, numbers[run.sha])
        for run in real
        for point in run.points
        if (point.case, point.metric) == (wanted.case, wanted.metric)
    )


def _cost(point: Point, number: int) -> float:
    return float(loops(point.case, number)) if point.metric.startswith("latency") else 1.0


def _point(point: Point, center: float, rng: Random) -> Point:
    spread = SPREAD[point.metric] / 2
    values = tuple(center * exp(rng.gauss(0.0, spread)) for _ in range(WORKERS))
    return point._replace(value=median(values))


def _run(template: RecordedRun, commit: Commit, points: tuple[Point, ...]) -> RecordedRun:
    measured_at = datetime.fromisoformat(commit.committed_at) + timedelta(hours=2)
    return replace(
        template,
        id=f"replayed-{commit.sha}",
        source="replayed",
        sha=commit.sha,
        subject=commit.subject,
        committed_at=commit.committed_at,
        measured_at=measured_at.isoformat(timespec="seconds"),
        position=commit.position,
        points=points,
    )
