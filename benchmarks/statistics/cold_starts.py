"""Reports that gate cold start beside latency: false alarms, and what is measured again."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import MODELS, Model, gaussian, rounds_luck
from benchmarks.statistics.paths import CASES, COLD, PATHS, ColdStart, policy_with
from benchmarks.statistics.scoring import (
    is_significant,
    markdown,
    percent,
    percent_with_interval,
)

LATENCY = "spread 0.7 %"
SPREADS = (0.05, 0.10)
"""Of a pair of cold starts: half of one is an import of torch."""
SESSION_LUCK = 0.02
CHANGES = (0.0, 0.10, 0.20, 0.50)
"""Of one case's cold start; the threshold is 10 %."""
ALPHA = 0.01
CHECKED = ("compare", "check, 1 session, confirmed", "check, 3 sessions, confirmed")
TASKS = tuple(f"{path}: {spread}" for path in CHECKED for spread in SPREADS)


def rows(task: str, reports: int) -> list[dict[str, Any]]:
    path, spread = task.rsplit(": ", 1)
    return [_row(path, float(spread), change, reports) for change in CHANGES]


def _row(path: str, spread: float, change: float, reports: int) -> dict[str, Any]:
    rng = np.random.default_rng(
        [13, zlib.crc32(path.encode()), round(1e4 * spread), round(100 * change)]
    )
    (latency,) = (model for model in MODELS if model.name == LATENCY)
    starts = Model("cold start", "", gaussian(spread), rounds_luck, SESSION_LUCK)
    changes = (float(np.log1p(change)), *[0.0] * (CASES - 1))
    row: dict[str, Any] = {"part": "cold", "path": path, "spread": spread, "change": change}
    names = ("reports", "failed", "falsely", "significant", "regressed", "unchanged", "again")
    count = dict.fromkeys((*names, "others_again", "rounds"), 0)
    for _ in range(reports):
        outcome = PATHS[path](
            latency, rng, [0.0] * CASES, policy_with(0.05), ColdStart(starts, changes)
        )
        (mine,) = (r for r in outcome.rows if r.case == "case0" and r.metric == COLD)
        count["reports"] += 1
        count["failed"] += outcome.verdict == "fail"
        count["falsely"] += any(
            r.status == "regressed" and (r is not mine or change == 0.0) for r in outcome.rows
        )
        count["significant"] += is_significant(mine, ALPHA)
        count["regressed"] += mine.status == "regressed"
        count["unchanged"] += mine.status == "unchanged"
        count["again"] += bool(mine.confirmed)
        count["others_again"] += len(
            {r.case for r in outcome.rows if r.confirmed and r.case != "case0"}
        )
        count["rounds"] += sum(outcome.rounds)
    return row | count


def table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "cold"]
    if not mine:
        return ""
    return markdown(
        (
            "path",
            "spread of a pair, %",
            "true change, %",
            "reports",
            "a false regression, % of reports",
            "significant, %",
            "regressed, %",
            "unchanged, %",
            "measured again, %",
            "others measured again, of 19",
            "rounds a case",
        ),
        [
            (
                row["path"],
                f"{100 * row['spread']:.0f}",
                f"{100 * row['change']:.0f}",
                row["reports"],
                percent_with_interval(row["falsely"], row["reports"]),
                percent(row["significant"], row["reports"]),
                percent(row["regressed"], row["reports"]),
                percent(row["unchanged"], row["reports"]),
                "–" if row["path"] == CHECKED[0] else percent(row["again"], row["reports"]),
                "–" if row["path"] == CHECKED[0] else f"{row['others_again'] / row['reports']:.1f}",
                f"{row['rounds'] / row['reports'] / CASES:.1f}",
            )
            for row in mine
        ],
    )
