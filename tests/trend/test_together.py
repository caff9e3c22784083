"""Series are examined together because that costs less: each answer is the one it has alone."""

from __future__ import annotations

import numpy as np

from perfci.trend.change import TrendSettings
from perfci.trend.moves import examine, examine_all


def any_series(rng: np.random.Generator) -> np.ndarray:
    """Return noise of some length and kind: with steps, ramps, odd runs, whole numbers, a walk."""
    size = int(rng.choice((5, 6, 7, 8, 13, 60, 200)))
    noise = rng.normal(0.0, rng.choice((0.0, 0.001, 0.01, 0.05)), size)
    levels = noise + rng.uniform(0.0, 0.6) * np.append(0.0, noise[:-1])
    for begin in rng.integers(0, size, rng.integers(0, 4)):
        levels[begin:] += rng.normal(0.0, 0.1)
    match rng.integers(0, 6):
        case 0:
            return np.round(100.0 * np.exp(levels))
        case 1:
            return levels
        case 2:
            return 10.0 + np.cumsum(levels)
        case 3:
            levels += np.linspace(0.0, 0.3, size)
        case 4:
            levels[rng.integers(0, size, 2)] += 1.0
    return np.exp(levels)


def test_each_of_many_series_has_the_very_answer_that_it_has_alone() -> None:
    rng = np.random.default_rng(0)
    many = [any_series(rng) for _ in range(1_500)]
    alone = [examine(values, TrendSettings()) for values in many]
    assert sum(map(len, alone)) > 300
    assert examine_all(many, TrendSettings()) == alone
    assert examine_all(many[700:], TrendSettings()) == alone[700:]
