"""What finding the changes costs, in perfci and in the other tools, on one core.

    PYTHONPATH=. python benchmarks/trend/detection_time.py --series 1000

Needs `requirements.txt`. Every series has 365 points of log-normal noise of 1 %; one in twenty has
a step. Told is the processor time a series; a tool stops after `--most` seconds, and says after how
many series. Reading, grouping and writing are not in it: `scale.py` measures all of perfci's.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.trend.peers import asv, otava
from perfci.trend import TrendSettings
from perfci.trend.change_points import examine_all

POINTS = 365
CHUNK = 256
"""Series that perfci examines together, as in a report."""


def some_series(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return (count, 365) values."""
    levels = rng.normal(0.0, 0.01, (count, POINTS))
    moved = rng.random(count) < 0.05
    size = rng.uniform(0.03, 0.2, count) * rng.choice((-1, 1), count) * moved
    where = rng.integers(POINTS // 6, POINTS, count)
    return np.exp(levels + (np.arange(POINTS) >= where[:, None]) * size[:, None])


def in_chunks(values: np.ndarray) -> Iterator[int]:
    """Yield how many series were examined since."""
    for start in range(0, len(values), CHUNK):
        yield len(examine_all(list(values[start : start + CHUNK]), TrendSettings()))


def one_by_one(values: np.ndarray, find: Callable[[np.ndarray], Sequence[int]]) -> Iterator[int]:
    """Yield 1 for each series."""
    for one in values:
        find(one)
        yield 1


def spent(steps: Iterator[int], most: float) -> dict[str, float]:
    """Return how many series were examined, and the processor time of one."""
    began, done = time.process_time(), 0
    for count in steps:
        done += count
        if time.process_time() - began > most:
            break
    return {"series": done, "ms_a_series": round((time.process_time() - began) / done * 1e3, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1_000)
    parser.add_argument("--most", type=float, default=20.0)
    given = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    values = some_series(given.series, np.random.default_rng(0))
    for steps in (in_chunks(values[:CHUNK]), one_by_one(values[:1], otava)):
        list(steps)  # imports, and what is kept for all
    tools = {
        "perfci": in_chunks(values),
        "apache-otava 0.8.0": one_by_one(values, otava),
        "asv 0.6.6": one_by_one(values, lambda one: asv(one, 0.0)),
    }
    for name, steps in tools.items():
        print(json.dumps({"tool": name} | spent(steps, given.most)), flush=True)


if __name__ == "__main__":
    main()
