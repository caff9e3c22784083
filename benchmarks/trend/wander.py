"""The wander by the length of levels: how much growth, the floor and the sets decide.

    PYTHONPATH=. python benchmarks/trend/wander.py

Prints a Markdown table: a row for each way of measuring the wander, with F1 at a margin of 5 on
labelled sets and on synthetic ones, and false alarms per 1,000 points where nothing moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.trend.f1 import score
from benchmarks.trend.hard_noise import modes
from benchmarks.trend.labelled import Labelled, Truth, labelled_real
from benchmarks.trend.ours import find
from benchmarks.trend.synthetic import LEVEL, NIGHTS, SIGMA, ar1, changed_series, quiet_series
from perfci.trend import TrendSettings, noise

SEED = 20261121
EACH = 20
SHORT = 120
QUIET = {100: 60, 365: 20, 2000: 4}
WAYS: dict[str, dict[str, float]] = {
    "one length": {"FEWEST_BLOCKS": 1e9},
    "growth 1.5": {"GROWTH": 1.5},
    "growth 2": {"GROWTH": 2.0},
    "growth 3": {"GROWTH": 3.0},
    "short series as long ones": {"SHORT_SERIES_BLOCK": 2},
}


def main() -> None:
    """Score each way on each set, and print the table."""
    changed = list(_changed(np.random.default_rng(SEED)))
    sets = _by_group([*labelled_real(), *changed_series(SEED, EACH // 2), *changed])
    still = [*quiet_series(SEED + 1, QUIET, (0.0, 0.3, 0.6)), *_still(np.random.default_rng(SEED))]
    quiet = _by_group(still)
    print("| | " + " | ".join(WAYS) + " |")
    print("|---" * (len(WAYS) + 1) + "|")
    for name, some in sets.items():
        print(f"| F1, {name} | " + " | ".join(_f1(some, way) for way in WAYS.values()) + " |")
    for name, some in quiet.items():
        cells = " | ".join(_alarms(some, way) for way in WAYS.values())
        print(f"| false alarms per 1,000 points, {name} | {cells} |")


def _f1(some: list[Labelled], way: dict[str, Any]) -> str:
    found = _found(some, way)
    return f"{score(zip(some, found, strict=True), 5).f1:.2f}"


def _alarms(some: list[Labelled], way: dict[str, Any]) -> str:
    points = sum(len(one.values) for one in some)
    return f"{1e3 * sum(map(len, _found(some, way))) / points:.2f}"


def _found(some: list[Labelled], way: dict[str, Any]) -> list[list[int]]:
    with patch.multiple(noise, **way):
        return find(some, TrendSettings())


def _changed(rng: np.random.Generator) -> Iterator[Labelled]:
    """Yield one step each, under a cycle of 7, 20 or 60 nights and in noise that swings slowly."""
    for number in range(EACH):
        for period in (7, 20, 60):
            yield _stepped(
                f"cycle {number}", "a cycle of 7, 20, 60", 0.05, _cycle(rng, period), rng
            )
        swing = SIGMA * ar1(rng, math.exp(-1 / 10), NIGHTS)
        yield _stepped(f"swing {number}", "Ornstein-Uhlenbeck, tau 10", 0.09, swing, rng)
    for number in range(3 * EACH):
        yield _several(f"several {number}", rng)


def _several(name: str, rng: np.random.Generator) -> Labelled:
    """Two to four steps of 3 to 8 % in 120 runs, 12 apart or more."""
    count = int(rng.integers(2, 5))
    gaps = rng.multinomial(SHORT - 12 * (count + 1), np.ones(count + 1) / (count + 1)) + 12
    places = np.cumsum(gaps)[:-1]
    logs = SIGMA * rng.standard_normal(SHORT)
    for place in places:
        logs[place:] += rng.uniform(0.03, 0.08) * rng.choice([-1, 1])
    truths = tuple(Truth(int(place), int(place)) for place in places)
    return Labelled("2 to 4 steps in 120 runs", "steps", name, LEVEL * np.exp(logs), truths)


def _stepped(
    name: str, group: str, size: float, under: np.ndarray, rng: np.random.Generator
) -> Labelled:
    at = int(rng.integers(60, NIGHTS - 60))
    step = size * rng.choice([-1, 1]) * (np.arange(NIGHTS) >= at)
    logs = step + under + SIGMA * rng.standard_normal(NIGHTS)
    return Labelled(group, "step", name, LEVEL * np.exp(logs), (Truth(at, at),))


def _cycle(rng: np.random.Generator, period: int, size: int = NIGHTS) -> np.ndarray:
    return 0.015 * np.sin(2 * np.pi * (np.arange(size) + rng.integers(period)) / period)


def _still(rng: np.random.Generator) -> Iterator[Labelled]:
    for size, count in QUIET.items():
        nights = np.arange(size)
        for number in range(count):
            under = {
                "Ornstein-Uhlenbeck, tau 10": SIGMA * ar1(rng, math.exp(-1 / 10), size),
                "Ornstein-Uhlenbeck, tau 40": SIGMA * ar1(rng, math.exp(-1 / 40), size),
                "a cycle of 20": _cycle(rng, 20, size),
                "weekends": 0.02 * (nights % 7 >= 5),
                "random walk": 0.1 * SIGMA * np.cumsum(rng.standard_normal(size)),
            }
            for group, wander in under.items():
                values = LEVEL * np.exp(wander + SIGMA * rng.standard_normal(size))
                yield Labelled(group, str(size), f"{group} {size} {number}", values, ())
    for number in range(160):
        values = LEVEL * np.exp(modes(rng, SHORT))
        yield Labelled("modes of eight runs, 120 runs", "", str(number), values, ())


def _by_group(many: list[Labelled]) -> dict[str, list[Labelled]]:
    groups: dict[str, list[Labelled]] = {}
    for one in many:
        groups.setdefault(one.group, []).append(one)
    return groups


if __name__ == "__main__":
    main()
