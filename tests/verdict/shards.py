"""Builders of shards' reports, for the tests of merging."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perfci.model.report import Comparison, Report, Timing, Verdict
from perfci.model.run import Environment, Side
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from tests.verdict.workers import both, case

POLICY = Policy()


def paired(
    name: str,
    ratio: float = 1.0,
    p: float | None = None,
    metric: str = "latency_p50",
    noise: float = 1.0,
    **more: Any,
) -> Comparison:
    """Return a row that was measured together, with the ``p`` that the test needs."""
    sides = both(metric, ratio, noise=noise)
    (row,) = compare_case(case(name), *sides, POLICY, paired=True)
    return replace(row, p=row.p if p is None else p, **more)


def stored(name: str, ratio: float = 1.0, p: float | None = None, **more: Any) -> Comparison:
    """Return a row that was measured against a baseline of two sessions."""
    sides = both("latency_p50", ratio)
    (row,) = compare_case(case(name), *sides, POLICY, paired=False, base_sessions=(3, 3))
    return replace(row, p=row.p if p is None else p, **more)


def shard(number: int, count: int, *rows: Comparison, **changes: Any) -> Report:
    """Return the report of one shard, its rows judged among themselves as a session does."""
    fields: dict[str, Any] = {
        "perfci_version": "0.1.0",
        "created_at": f"2026-03-04T05:0{number}:07+00:00",
        "command": "compare",
        "base": Side("main", "a" * 40, "/usr/bin/python3.11"),
        "head": Side("feature", "b" * 40, "/usr/bin/python3.11"),
        "environment": Environment("linux-x86_64-cpu-1a2b3c4d", {"cpu": "AMD EPYC 9654"}),
        "verdict": Verdict("pass", ()),
        "timing": Timing(wall_s=10.0 * number, measured_s=2.0, rounds=6),
        "results": adjust(rows, POLICY),
        "failures": (),
        "shard": f"{number}/{count}",
        "split": "0123456789ab",
    }
    return Report(**{**fields, **changes})
