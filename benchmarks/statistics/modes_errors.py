"""How often `two_modes` sees two where there is one, and misses two where there are two."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.statistics.noise import GAP, Array, Rng
from benchmarks.statistics.scoring import markdown, percent
from perfci.stats.modes import two_modes

SIZES = (5, 6, 8, 10, 12, 15, 20, 40)
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


def rows(task: str, runs: int) -> list[dict[str, object]]:
    found = []
    for size in SIZES:
        rng = np.random.default_rng([7, size, zlib.crc32(task.encode())])
        seen = sum(
            two_modes(np.exp(_DRAWS[task](rng, size)).tolist()) is not None for _ in range(runs)
        )
        found.append({"part": "modes", "values": task, "n": size, "runs": runs, "seen": seen})
    return found


def table(results: Sequence[dict[str, object]]) -> str:
    mine = [row for row in results if row["part"] == "modes"]
    if not mine:
        return ""
    cells = {(row["values"], row["n"]): percent(row["seen"], row["runs"]) for row in mine}
    return markdown(
        ("% of samples called two modes", *(f"n = {n}" for n in SIZES)),
        [(v, *(cells[v, n] for n in SIZES)) for v in dict.fromkeys(r["values"] for r in mine)],
    )
