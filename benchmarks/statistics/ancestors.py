"""Rounds that share ancestors: how few ancestors do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.scoring import markdown, percent, rng_of
from perfci.stats.t_tests import nested_t

DESIGNS = (
    (3, 3), (2, 2, 1), (2, 2, 2), (3, 3, 3), (5, 5, 5), (2, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3),
    (5, 5, 5, 5), (1,) * 5, (3,) * 5,
)  # fmt: skip
"""How many rounds each ancestor gives."""
RATIOS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 16.0)
"""Variance between ancestors ÷ within."""
TASKS = tuple(",".join(map(str, design)) for design in DESIGNS)


def rows(task: str, runs: int) -> list[dict[str, Any]]:
    """Return the coverage of a design for each ratio of the variances."""
    return [_coverage(tuple(map(int, task.split(","))), ratio, runs) for ratio in RATIOS]


def _coverage(design: tuple[int, ...], ratio: float, runs: int) -> dict[str, Any]:
    rng = rng_of("ancestors", str(design), str(ratio))
    of = np.repeat(np.arange(1, len(design) + 1), design)
    luck = rng.normal(0.0, np.sqrt(ratio), (runs, len(design)))[:, of - 1]
    seen = (luck + rng.normal(0.0, 1.0, (runs, len(of)))).tolist()
    tests = [nested_t([0.0] * len(of), one, of.tolist()) for one in seen]
    held = sum(test.lo <= 0.0 <= test.hi for test in tests)
    wide = sum(test.hi - test.lo for test in tests) / runs
    name = "+".join(map(str, design))
    return {"part": "ancestors", "design": name, "ratio": ratio, "runs": runs, "held": held,
            "width": wide}  # fmt: skip


def design_table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "ancestors"]
    if not mine:
        return ""
    cells = {(row["design"], row["ratio"]): row for row in mine}
    designs = dict.fromkeys(row["design"] for row in mine)
    lines = [
        (name, *(percent(cells[name, r]["held"], cells[name, r]["runs"]) for r in RATIOS))
        for name in designs
    ]
    return markdown(("rounds of each ancestor", *(f"{ratio:g}" for ratio in RATIOS)), lines)
