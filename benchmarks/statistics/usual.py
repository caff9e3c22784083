"""The usual recipe, for reference: Welch's t on the raw iterations of one process a side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from benchmarks.statistics.noise import Array, Model, Rng
from benchmarks.statistics.paths import CASES
from benchmarks.statistics.scoring import largest_error, markdown, percent, rng_of
from benchmarks.statistics.thresholds import THRESHOLD

ITERATIONS = 100
WITHIN = 0.02
"""The spread of iterations within a process; they are independent here, which flatters it."""


def alarms(model: Model, rng: Rng, least_change: float) -> Array:
    """Return which of a report's identical cases it calls slower: p < 0.05 and abs(d) > 0.2."""
    seen = model.together(rng, CASES, 1)
    shape = (CASES, ITERATIONS)
    sides = [values + rng.normal(0.0, WITHIN, shape) for values in (seen.base, seen.head)]
    centers = [np.mean(side, axis=1) for side in sides]
    spreads = [np.var(side, axis=1, ddof=1) for side in sides]
    pooled = np.sqrt((spreads[0] + spreads[1]) / 2.0)
    difference = centers[1] - centers[0]
    parts = [spread / ITERATIONS for spread in spreads]
    df = (parts[0] + parts[1]) ** 2 / sum(part**2 / (ITERATIONS - 1) for part in parts)
    p = 2.0 * special.stdtr(df, -np.abs(difference) / np.sqrt(parts[0] + parts[1]))
    found = (p < 0.05) & (np.abs(difference / pooled) > 0.2)
    return found & (difference > np.log1p(least_change))


def rows(model: Model, reports: int) -> list[dict[str, Any]]:
    rng = rng_of("usual", model.name)
    counts = {
        least: sum(bool(alarms(model, rng, least).any()) for _ in range(reports))
        for least in (0.0, THRESHOLD)
    }
    return [
        {"part": "usual", "model": model.name, "least": least, "reports": reports, "failed": count}
        for least, count in counts.items()
    ]


def table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "usual"]
    if not mine:
        return ""
    cells = {(row["model"], row["least"]): percent(row["failed"], row["reports"]) for row in mine}
    made = markdown(
        ("model", "p < 0.05 and d > 0.2", "and slower by 5 %"),
        [(m, cells[m, 0.0], cells[m, THRESHOLD]) for m in dict.fromkeys(r["model"] for r in mine)],
    )
    return f"{made}\n\n{largest_error((row['failed'], row['reports']) for row in mine)}"
