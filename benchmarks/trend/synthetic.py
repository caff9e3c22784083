"""Synthetic series with known truth: eight shapes, in independent and in AR(1) noise.

The marginal standard deviation of the noise is 1 % of the level whatever its autocorrelation,
and steps are 2.5 to 8 % in either direction.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.signal import lfilter

from benchmarks.trend.labelled import Labelled, Truth

NIGHTS = 365
LEVEL = 100.0
SIGMA = 0.01
RHOS = (0.0, 0.3, 0.6)

Shape = Callable[[np.random.Generator], tuple[np.ndarray, tuple[Truth, ...]]]


def ar1(rng: np.random.Generator, rho: float, size: int) -> np.ndarray:
    """Stationary AR(1) noise of marginal standard deviation 1."""
    innovations = rng.standard_normal(size) * np.sqrt(1 - rho**2)
    innovations[0] = rng.standard_normal()
    return lfilter([1.0], [1.0, -rho], innovations)


def changed_series(seed: int, each: int) -> list[Labelled]:
    """``each`` series of every shape in every noise."""
    rng = np.random.default_rng(seed)
    made = []
    for rho in RHOS:
        group = f"AR({rho})" if rho else "i.i.d."
        for shape, make in SHAPES.items():
            for number in range(each):
                shift, truths = make(rng)
                noise = SIGMA * ar1(rng, rho, NIGHTS)
                values, kept = _disturbed(shape, shift + noise, truths, rng)
                made.append(Labelled(group, shape, f"{group} {shape} {number}", values, kept))
    return made


def quiet_series(seed: int, counts: dict[int, int], rhos: tuple[float, ...]) -> list[Labelled]:
    """Stationary series: ``counts`` maps a length to how many of it for every rho."""
    rng = np.random.default_rng(seed)
    return [
        Labelled(f"AR({rho})", str(size), str(number), _values(SIGMA * ar1(rng, rho, size)), ())
        for rho in rhos
        for size, count in counts.items()
        for number in range(count)
    ]


def _values(logs: np.ndarray) -> np.ndarray:
    return LEVEL * np.exp(logs)


def _size(rng: np.random.Generator) -> float:
    return float(rng.uniform(0.025, 0.08) * rng.choice([-1, 1]))


def _quiet(_rng: np.random.Generator) -> tuple[np.ndarray, tuple[Truth, ...]]:
    return np.zeros(NIGHTS), ()


def _step(rng: np.random.Generator) -> tuple[np.ndarray, tuple[Truth, ...]]:
    at = int(rng.integers(20, NIGHTS - 20))
    return _size(rng) * (np.arange(NIGHTS) >= at), (Truth(at, at),)


def _recent_step(rng: np.random.Generator) -> tuple[np.ndarray, tuple[Truth, ...]]:
    at = int(rng.integers(NIGHTS - 12, NIGHTS - 5))
    return _size(rng) * (np.arange(NIGHTS) >= at), (Truth(at, at),)


def _several_steps(rng: np.random.Generator) -> tuple[np.ndarray, tuple[Truth, ...]]:
    count = int(rng.integers(3, 7))
    gaps = rng.multinomial(NIGHTS - 15 * (count + 1), np.ones(count + 1) / (count + 1)) + 15
    places = np.cumsum(gaps)[:-1]
    shift = sum(_size(rng) * (np.arange(NIGHTS) >= at) for at in places)
    return np.asarray(shift), tuple(Truth(int(at), int(at)) for at in places)


def _ramp(rng: np.random.Generator) -> tuple[np.ndarray, tuple[Truth, ...]]:
    begin = int(rng.integers(40, NIGHTS - 120))
    length = int(rng.integers(20, 61))
    total = float(rng.uniform(0.05, 0.1) * rng.choice([-1, 1]))
    share = np.clip((np.arange(NIGHTS) - begin + 1) / length, 0, 1)
    return total * share, (Truth(begin, begin + length - 1),)


SHAPES: dict[str, Shape] = {
    "quiet": _quiet,
    "one step": _step,
    "recent step": _recent_step,
    "several steps": _several_steps,
    "step, outliers": _step,
    "step, bimodal": _step,
    "step, missing nights": _step,
    "ramp": _ramp,
}


def _disturbed(
    shape: str, logs: np.ndarray, truths: tuple[Truth, ...], rng: np.random.Generator
) -> tuple[np.ndarray, tuple[Truth, ...]]:
    if shape in {"quiet", "step, outliers"}:  # single bad nights, and one pair of them
        count = max(3, NIGHTS // 40)
        places = rng.choice(NIGHTS - 1, count, replace=False)
        logs[places] += rng.uniform(0.05, 0.3, count)
        logs[places[0] : places[0] + 2] += 0.1
    if shape == "step, bimodal":
        logs += 0.04 * (rng.random(NIGHTS) < 0.3)
    if shape == "step, missing nights":
        kept = rng.random(NIGHTS) > 0.15
        gap = int(rng.integers(0, NIGHTS - 14))
        kept[gap : gap + 14] = False
        before = np.concatenate([[0], np.cumsum(kept)])
        moved = tuple(Truth(int(before[t.begin]), int(before[t.end])) for t in truths)
        return _values(logs[kept]), moved
    return _values(logs), truths
