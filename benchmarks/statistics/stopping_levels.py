"""How sure an interval has to be before it stops a case: rounds and coverage by that level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.paths import CASES, GATING
from benchmarks.statistics.scoring import markdown, percent
from perfci.model.measuring import MeasureSettings
from perfci.stats.t_tests import paired_t
from perfci.verdict.stopping import is_decided

LEVELS = (0.05, 0.011, 0.002)
SPREADS = (0.007, 0.02)
CHANGES = (0.0, 0.02, 0.04, 0.05)
_SETTINGS = MeasureSettings()
LIMIT = math.log1p(0.05)
ALPHA = 0.01
TASKS = tuple(f"stopping at {level}" for level in LEVELS)


def rows(task: str, runs: int) -> list[dict[str, Any]]:
    """Normal log ratios, stopped by the interval of that level, which is the one that counts."""
    level = float(task.rsplit(maxsplit=1)[-1])
    return [_row(level, spread, change, runs) for spread in SPREADS for change in CHANGES]


def _row(level: float, spread: float, change: float, runs: int) -> dict[str, Any]:
    rng = np.random.default_rng([10, round(1e4 * level), round(1e4 * spread), round(100 * change)])
    true = float(np.log1p(change))
    held = rounds = 0
    for _ in range(runs):
        differences = rng.normal(true, spread, _SETTINGS.max_rounds).tolist()
        count = _SETTINGS.rounds
        while True:
            test = paired_t([0.0] * count, differences[:count], confidence=1.0 - level)
            assert test.lo is not None
            assert test.hi is not None
            decided = is_decided(test.lo, test.hi, test.p, LIMIT, ALPHA / (CASES * GATING))
            if count == _SETTINGS.max_rounds or decided:
                break
            count += 1
        held += test.lo <= true <= test.hi
        rounds += count
    return {
        "part": "stopping",
        "level": level,
        "spread": spread,
        "change": change,
        "runs": runs,
        "held": held,
        "rounds": rounds,
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "stopping"]
    if not mine:
        return ""
    cells = {
        (row["level"], row["spread"], row["change"]): (
            f"{percent(row['held'], row['runs'])}; {row['rounds'] / row['runs']:.1f}"
        )
        for row in mine
    }
    return markdown(
        ("interval that stops", "spread", *(f"true change {change:.0%}" for change in CHANGES)),
        [
            (
                f"{1 - level:.1%}",
                f"{spread:.1%}",
                *(cells[level, spread, change] for change in CHANGES),
            )
            for level in LEVELS
            for spread in SPREADS
        ],
    )
