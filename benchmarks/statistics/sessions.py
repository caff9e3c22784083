"""Head against a stored baseline of several sessions, with luck of sessions of any size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import Array
from benchmarks.statistics.scoring import markdown, percent
from perfci.stats.evidence import unpaired_evidence
from perfci.stats.t_tests import t_quantile

WITHIN = 0.01
BETWEEN = (0.0, 0.01, 0.03)
SESSIONS = (1, 2, 3, 5, 10)
WORKERS = 5
HEAD_WORKERS = (5, 3)
TASKS = tuple(f"{count} sessions" for count in SESSIONS)


def rows(task: str, runs: int) -> list[dict[str, Any]]:
    count = int(task.split(maxsplit=1)[0])
    return [_row(count, between, head, runs) for between in BETWEEN for head in HEAD_WORKERS]


def _row(count: int, between: float, head_workers: int, runs: int) -> dict[str, Any]:
    rng = np.random.default_rng([9, count, round(1e4 * between), head_workers])
    held = held_mixed = alarms = 0
    widths = []
    for _ in range(runs):
        luck = rng.normal(0.0, between, (count + 1, 1))
        logs = luck + rng.normal(0.0, WITHIN, (count + 1, WORKERS))
        values = np.exp(logs).tolist()
        evidence = unpaired_evidence(values[:-1], values[-1][:head_workers], alpha=0.01)
        held += evidence.ratio_lo <= 1.0 <= evidence.ratio_hi
        alarms += evidence.p < 0.01
        if count > 1:
            half = _half_width_with_mixed_df(logs[:-1], logs[-1][:head_workers])
            held_mixed += abs(math.log(evidence.ratio)) <= half
        widths.append(math.log(evidence.ratio_hi))
        widths.append(-math.log(evidence.ratio_lo))
    return {
        "part": "sessions",
        "sessions": count,
        "between": between,
        "head_workers": head_workers,
        "runs": runs,
        "held": held,
        "held_mixed": held_mixed if count > 1 else None,
        "alarms": alarms,
        "half_width": round(float(np.median(widths)), 6),
    }


def _half_width_with_mixed_df(sessions: Array, head: Array) -> float:
    """What was rejected: Satterthwaite's degrees of freedom for a head of fewer workers."""
    count, workers = sessions.shape
    between = float(np.var(sessions.mean(axis=1), ddof=1)) * (1.0 + 1.0 / count)
    within_df = count * (workers - 1) + len(head) - 1
    squares = sum(float(np.var(group, ddof=1)) * (len(group) - 1) for group in (*sessions, head))
    within = max(0.0, 1.0 / len(head) - 1.0 / workers) * squares / within_df
    df = (between + within) ** 2 / (between**2 / (count - 1) + within**2 / within_df)
    return t_quantile(0.975, df) * math.sqrt(between + within)


def table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "sessions"]
    if not mine:
        return ""
    return markdown(
        (
            "sessions in the baseline",
            "spread between sessions, %",
            "head's workers",
            "interval holds, %",
            "with Satterthwaite's df, %",
            "p < 0.01, % of tests",
            "half-width of the interval, %",
        ),
        [
            (
                row["sessions"],
                f"{100 * row['between']:.0f}",
                row["head_workers"],
                percent(row["held"], row["runs"]),
                "–" if row["held_mixed"] is None else percent(row["held_mixed"], row["runs"]),
                percent(row["alarms"], row["runs"], 2),
                f"{100 * row['half_width']:.1f}",
            )
            for row in mine
        ],
    )
