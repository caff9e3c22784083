"""How often the rule for rounds far out takes a round that nothing but chance has made."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from benchmarks.statistics.modes_errors import Draw
from benchmarks.statistics.scoring import largest_error, markdown, percent
from perfci.stats.outliers import outlier_indices

SIZES = tuple(range(6, 21))
_DRAWS: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t5": lambda rng, n: rng.standard_t(5.0, n),
    "t3": lambda rng, n: rng.standard_t(3.0, n),
    "t2": lambda rng, n: rng.standard_t(2.0, n),
    "skewed (exponential)": lambda rng, n: rng.exponential(size=n),
    "one in 5 by 14 spreads": lambda rng, n: rng.normal(size=n) + 14.0 * (rng.random(n) < 0.2),
}
"""The last is a true second state: 10 % at 0.7 %."""
TASKS = tuple(_DRAWS)


def rows(task: str, runs: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for size in SIZES:
        rng = np.random.default_rng([12, size, zlib.crc32(task.encode())])
        some = worse = 0
        for _ in range(runs):
            values = _DRAWS[task](rng, size).tolist()
            far = outlier_indices(values)
            some += bool(far)
            middle = float(np.median(values)) if len(far) > 1 else 0.0
            worse += len(far) > 1 and all(values[index] > middle for index in far)
        cell = {"values": task, "n": size, "runs": runs, "some": some, "two_worse": worse}
        found.append({"part": "outliers", **cell})
    return found


def table(results: Sequence[dict[str, object]]) -> str:
    mine = [row for row in results if row["part"] == "outliers"]
    if not mine:
        return ""
    cells = {
        (row["values"], row["n"]): (
            f"{percent(row['some'], row['runs'], 2)}; {percent(row['two_worse'], row['runs'], 2)}"
        )
        for row in mine
    }
    names = tuple(dict.fromkeys(row["values"] for row in mine))
    made = markdown(("rounds", *names), [(n, *(cells[name, n] for name in names)) for n in SIZES])
    normal = [(row["some"], row["runs"]) for row in mine if row["values"] == "normal"]
    return f"{made}\n\nNormal rounds. {largest_error(normal, 2)}"
