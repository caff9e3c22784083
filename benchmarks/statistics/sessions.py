"""Head against a stored baseline of several sessions, with luck of sessions of any size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.scoring import markdown, percent
from perfci.stats.evidence import unpaired_evidence

WITHIN = 0.01
BETWEEN = (0.0, 0.01, 0.03)
SESSIONS = (1, 2, 3, 5, 10)
WORKERS = 5
TASKS = tuple(f"{count} sessions" for count in SESSIONS)


def rows(task: str, runs: int) -> list[dict[str, Any]]:
    count = int(task.split(maxsplit=1)[0])
    return [_row(count, between, runs) for between in BETWEEN]


def _row(count: int, between: float, runs: int) -> dict[str, Any]:
    rng = np.random.default_rng([9, count, round(1e4 * between), WORKERS])
    held = alarms = 0
    widths = []
    for _ in range(runs):
        luck = rng.normal(0.0, between, (count + 1, 1))
        logs = luck + rng.normal(0.0, WITHIN, (count + 1, WORKERS))
        values = np.exp(logs).tolist()
        evidence = unpaired_evidence(values[:-1], values[-1], alpha=0.01)
        held += evidence.ratio_lo <= 1.0 <= evidence.ratio_hi
        alarms += evidence.p < 0.01
        widths.append(math.log(evidence.ratio_hi))
        widths.append(-math.log(evidence.ratio_lo))
    return {
        "part": "sessions",
        "sessions": count,
        "between": between,
        "runs": runs,
        "held": held,
        "alarms": alarms,
        "half_width": round(float(np.median(widths)), 6),
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "sessions"]
    if not mine:
        return ""
    return markdown(
        (
            "sessions in the baseline",
            "spread between sessions, %",
            "interval holds, %",
            "p < 0.01, % of tests",
            "half-width of the interval, %",
        ),
        [
            (
                row["sessions"],
                f"{100 * row['between']:.0f}",
                percent(row["held"], row["runs"]),
                percent(row["alarms"], row["runs"], 2),
                f"{100 * row['half_width']:.1f}",
            )
            for row in mine
        ],
    )
