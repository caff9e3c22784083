"""False alarms in noise that changes, or that has a period or modes; nothing moves for good.

    PYTHONPATH=. python benchmarks/trend/hard_noise.py
    PYTHONPATH=. peers/bin/python benchmarks/trend/hard_noise.py --tool asv

Prints a Markdown table: false alarms per 1,000 points, and their median size. The noise is 1 % of
the level unless a row says otherwise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median

import numpy as np

from benchmarks.trend.labelled import Labelled
from benchmarks.trend.ours import find
from benchmarks.trend.synthetic import LEVEL, SIGMA, ar1
from perfci.trend import TrendSettings

SEED = 20261128
SERIES, RUNS = 40, 365
"""Series of a row. Of shorter series there are more, so that a row has as many runs."""
Shape = Callable[[np.random.Generator, int], np.ndarray]


def windows(rng: np.random.Generator, size: int) -> np.ndarray:
    """Three times the noise in windows of 30 runs, a fifth of all."""
    loud = np.repeat(rng.random(size // 30 + 1) < 0.2, 30)[:size]
    return SIGMA * rng.standard_normal(size) * np.where(loud, 3.0, 1.0)


def louder(rng: np.random.Generator, size: int) -> np.ndarray:
    """Noise of 1 %, and of 3 % from the middle on."""
    return SIGMA * rng.standard_normal(size) * np.where(np.arange(size) < size // 2, 1.0, 3.0)


def modes(rng: np.random.Generator, size: int) -> np.ndarray:
    """Two modes 4 % apart, each staying for eight runs in the mean."""
    high = np.cumsum(rng.random(size) < 1 / 8) % 2
    return 0.04 * high + SIGMA * rng.standard_normal(size)


def sine(rng: np.random.Generator, size: int) -> np.ndarray:
    """A monthly sine of ± 2 %."""
    phase = rng.uniform(0, 2 * np.pi)
    cycle = 0.02 * np.sin(2 * np.pi * np.arange(size) / 30 + phase)
    return cycle + SIGMA * rng.standard_normal(size)


def swing(rng: np.random.Generator, size: int) -> np.ndarray:
    """Ornstein-Uhlenbeck noise of 1 % and tau 10, under noise of 1 %."""
    return SIGMA * (ar1(rng, float(np.exp(-1 / 10)), size) + rng.standard_normal(size))


def plain(rng: np.random.Generator, size: int) -> np.ndarray:
    """Independent noise."""
    return SIGMA * rng.standard_normal(size)


ROWS: dict[str, tuple[Shape, int]] = {
    "independent noise, 365 runs": (plain, 365),
    "windows of 30 runs with three times the noise, 365 runs": (windows, 365),
    "noise of 1 %, then of 3 %, 365 runs": (louder, 365),
    "modes that stay for eight runs, 365 runs": (modes, 365),
    "modes that stay for eight runs, 120 runs": (modes, 120),
    "Ornstein-Uhlenbeck, tau 10, 365 runs": (swing, 365),
    "Ornstein-Uhlenbeck, tau 10, 120 runs": (swing, 120),
    "a monthly sine of ± 2 %, 365 runs": (sine, 365),
    "a monthly sine of ± 2 %, 730 runs": (sine, 730),
    "a monthly sine of ± 2 %, 1,000 runs": (sine, 1000),
    "a monthly sine of ± 2 %, 1,500 runs": (sine, 1500),
}


def main() -> None:
    """Print the table of one tool."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", default="perfci")
    options = parser.parse_args()
    print(f"| | {options.tool}: false alarms per 1,000 points; median size |")
    print("|---|---|")
    for name, (shape, size) in ROWS.items():
        rng = np.random.default_rng(SEED)
        count = max(SERIES, SERIES * RUNS // size)
        some = [
            Labelled(name, "", str(number), LEVEL * np.exp(shape(rng, size)), ())
            for number in range(count)
        ]
        places = _places(options.tool, some)
        sizes = [
            abs(np.log(_level(series, at, end) / _level(series, begin, at)))
            for series, found in zip(some, places, strict=True)
            for begin, at, end in zip([0, *found], found, [*found[1:], size], strict=False)
        ]
        rate = 1e3 * len(sizes) / (count * size)
        print(f"| {name} | {rate:.2f}; {f'{median(sizes):.1%}' if sizes else '-'} |", flush=True)


def _places(tool: str, some: list[Labelled]) -> list[list[int]]:
    if tool == "perfci":
        return find(some, TrendSettings())
    from benchmarks.trend.peers import PEERS

    detect = next(by["defaults"] for name, by in PEERS.items() if name.startswith(tool))
    return [[int(place) for place in detect(series.values)] for series in some]


def _level(series: Labelled, begin: int, end: int) -> float:
    return float(np.median(series.values[begin:end]))


if __name__ == "__main__":
    main()
