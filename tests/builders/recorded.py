"""Recorded runs, made from a number: the same number is the same run in every process."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from perfci.model.run import Environment, Point, RecordedRun, RunHeader
from perfci.trend import KnownChange, SeriesKey

HERE = Environment("linux-x86_64-cpu-1a2b", {"cpu": "AMD EPYC", "torch": "2.9.0"})
THERE = Environment("linux-x86_64-h100-3c4d", {"device_name": "NVIDIA H100"})


def recorded(
    number: int, environment: Environment = HERE, cases: int = 2, **changed: Any
) -> RecordedRun:
    """Return one of many runs: two metrics a case."""
    fields: dict[str, Any] = {
        "id": f"run-{environment.key[-4:]}-{number:05}",
        "source": "nightly",
        "sha": f"{number:040x}",
        "subject": f"Änderung {number} 🚀",
        "branch": "main",
        "committed_at": f"2024-{1 + number // 28 % 12:02}-{1 + number % 28:02}T01:00:00+00:00",
        "measured_at": f"2024-{1 + number // 28 % 12:02}-{1 + number % 28:02}T03:00:00+00:00",
        "position": number,
        "environment": environment,
        "runner": "lab-1",
        "points": tuple(
            point
            for case in range(cases)
            for point in (
                Point(f"case_{case}[n=1]", "latency_p50", "s", (1 + number / 7 + case / 3) * 1e-3),
                Point(f"case_{case}[n=1]", "throughput", "items/s", 1e3, "higher"),
            )
        ),
        "source_hashes": {f"case_{case}[n=1]": "one" for case in range(cases)},
        "failed": {"broken": "crash: gone"},
    }
    return RecordedRun(**fields | changed)


def header(number: int, **changed: Any) -> RunHeader:
    """Return the head of one of many runs, of a day that is the number's."""
    day = date(2026, 1, 1) + timedelta(days=number)
    fields: dict[str, Any] = {
        "id": f"run-{number}",
        "source": "nightly",
        "sha": f"{number:040x}",
        "subject": f"Commit {number}",
        "branch": "main",
        "committed_at": f"{day}T12:00:00+00:00",
        "measured_at": f"{day}T23:00:00+00:00",
        "position": number,
        "runner": "runner-1",
    }
    return RunHeader(**fields | changed)


def in_order(run: RecordedRun) -> RecordedRun:
    """Return the run with its points sorted: in a database they have no order."""
    from dataclasses import replace

    return replace(run, points=tuple(sorted(run.points, key=lambda one: (one.case, one.metric))))


def change(number: int = 1, **changed: Any) -> KnownChange:
    fields: dict[str, Any] = {
        "id": f"{number:08x}",
        "series": SeriesKey(HERE.key, "case_0[n=1]", "latency_p50"),
        "sha_before": f"{number:040x}",
        "sha_after": f"{number + 1:040x}",
        "worse": True,
        "first_seen_at": f"2024-03-{number:02}T04:00:00+00:00",
    }
    return KnownChange(**fields | changed)
