"""How often `two_modes` sees two where there is one, and misses two where there are two."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import GAP, Array, Rng
from benchmarks.statistics.scoring import largest_error, markdown, percent
from perfci.stats.spread import two_modes

SIZES = (5, 6, 8, 10, 12, 15, 20, 40)
FEWEST = (2, 1)
"""Values that make a mode: `calibrate` asks for two, a doubt of a verdict for one."""
Draw = Callable[[Rng, int], Array]


def _states(slow: float, spread: float) -> Draw:
    return lambda rng, n: GAP * (rng.random(n) < slow) + rng.normal(0.0, spread, n)


_DRAWS: dict[str, Draw] = {
    "one mode, normal": lambda rng, n: 0.02 * rng.normal(size=n),
    "one mode, t3": lambda rng, n: 0.02 * rng.standard_t(3.0, n),
    "one mode, t2": lambda rng, n: 0.02 * rng.standard_t(2.0, n),
    "one mode, skewed (exponential)": lambda rng, n: 0.02 * rng.exponential(size=n),
    "10 % apart, half slow, spread 0.7 %": _states(0.5, 0.007),
    "10 % apart, half slow, spread 2 %": _states(0.5, 0.02),
    "10 % apart, fifth slow, spread 0.7 %": _states(0.2, 0.007),
    "10 % apart, fifth slow, spread 2 %": _states(0.2, 0.02),
}
TASKS = tuple(_DRAWS)


def rows(task: str, runs: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for size in SIZES:
        rng = np.random.default_rng([7, size, zlib.crc32(task.encode())])
        samples = [np.exp(_DRAWS[task](rng, size)).tolist() for _ in range(runs)]
        for fewest in FEWEST:
            seen = sum(two_modes(sample, fewest=fewest) is not None for sample in samples)
            cell = {"values": task, "n": size, "fewest": fewest, "runs": runs, "seen": seen}
            found.append({"part": "modes", **cell})
    return found


def table(results: Sequence[dict[str, Any]], fewest: int) -> str:
    mine = [row for row in results if row["part"] == "modes" and row["fewest"] == fewest]
    if not mine:
        return ""
    cells = {(row["values"], row["n"]): percent(row["seen"], row["runs"]) for row in mine}
    made = markdown(
        ("% of samples called two modes", *(f"n = {n}" for n in SIZES)),
        [(v, *(cells[v, n] for n in SIZES)) for v in dict.fromkeys(r["values"] for r in mine)],
    )
    return f"{made}\n\n{largest_error((row['seen'], row['runs']) for row in mine)}"
