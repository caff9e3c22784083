"""P95 and P99 that lie wholly beyond their threshold warn, decided or not: how often falsely?"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import Array, Rng
from benchmarks.statistics.paths import CASES
from benchmarks.statistics.scoring import markdown, percent, percent_with_interval
from perfci.metrics import METRICS
from perfci.stats.evidence import look_confidence
from perfci.stats.t_tests import t_quantile

TAILS = ("latency_p95", "latency_p99")
ROUNDS = (5, 8)
CHANGES = (0.10, 0.25, 0.50, 1.42)
Draw = Callable[[Rng, tuple[int, ...]], Array]
_MODELS: dict[str, Draw] = {
    "normal, 2 %": lambda rng, shape: rng.normal(0.0, 0.02, shape),
    "normal, 10 %": lambda rng, shape: rng.normal(0.0, 0.10, shape),
    "normal, 30 %": lambda rng, shape: rng.normal(0.0, 0.30, shape),
    "heavy tails, t2": lambda rng, shape: 0.05 * rng.standard_t(2.0, shape),
    "one round in five disturbed": lambda rng, shape: (
        rng.normal(0.0, 0.03, shape)
        + math.log(2.0) * ((rng.random(shape) < 0.1) * 1.0 - (rng.random(shape) < 0.1))
    ),
    "two speeds 60 % apart": lambda rng, shape: (
        rng.normal(0.0, 0.02, shape)
        + math.log(1.6) * ((rng.random(shape) < 0.5) * 1.0 - (rng.random(shape) < 0.5))
    ),
}
TASKS = tuple(f"tails: {name}" for name in _MODELS)


def rows(task: str, runs: int) -> list[dict[str, Any]]:
    """Reports of ``CASES`` cases with both tails, each with noise of its own."""
    name = task.removeprefix("tails: ")
    return [_row(name, rounds, change, runs) for rounds in ROUNDS for change in (0.0, *CHANGES)]


def _row(name: str, rounds: int, change: float, runs: int) -> dict[str, Any]:
    rng = np.random.default_rng([8, rounds, round(100 * change), zlib.crc32(name.encode())])
    logs = math.log1p(change) + _MODELS[name](rng, (runs, CASES * len(TAILS), rounds))
    se = logs.std(axis=-1, ddof=1) / math.sqrt(rounds)
    half = t_quantile(0.5 + look_confidence(5, 20) / 2.0, rounds - 1) * se
    warned = logs.mean(axis=-1) - half > math.log1p(METRICS[TAILS[0]].threshold)
    return {
        "part": "tails",
        "model": name,
        "rounds": rounds,
        "change": change,
        "reports": runs,
        "warned_reports": int(warned.any(axis=-1).sum()),
        "rows": int(warned.size),
        "warned": int(warned.sum()),
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "tails"]
    if not mine:
        return ""
    lines = []
    for key in dict.fromkeys((row["model"], row["rounds"]) for row in mine):
        cells = {row["change"]: row for row in mine if (row["model"], row["rounds"]) == key}
        alike = cells[0.0]
        false = percent_with_interval(alike["warned_reports"], alike["reports"])
        shares = [percent(cells[c]["warned"], cells[c]["rows"], 0) for c in CHANGES]
        lines.append((*key, false, *shares))
    heads = ("noise of a round's log ratio", "rounds", "identical: reports with a warning")
    return markdown((*heads, *(f"tail +{change:.0%}" for change in CHANGES)), lines)
