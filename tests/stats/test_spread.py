"""Spreads: their upper bound, and the ratio of two of them, against tables and by simulation."""

from __future__ import annotations

import math
from random import Random

import pytest

from perfci.stats.spread import Spread, spread_ratio, upper_bound
from perfci.stats.t_tests import variance


def test_the_upper_bound_is_that_of_the_chi_squared_table() -> None:
    assert upper_bound(Spread(1.0, 9)) == pytest.approx(math.sqrt(9 / 3.325), rel=1e-3)


def test_one_pair_has_the_f_interval_of_the_table() -> None:
    found = spread_ratio([(Spread(2.0, 9), Spread(1.0, 9))])
    assert found.ratio == 2.0
    assert found.lo == pytest.approx(math.sqrt(4.0 / 4.026), rel=1e-3)
    assert found.hi == pytest.approx(math.sqrt(4.0 * 4.026), rel=1e-3)


def test_swapping_the_sides_inverts_the_ratio_and_its_interval() -> None:
    pairs = [(Spread(2.0, 5), Spread(1.0, 9)), (Spread(0.3, 4), Spread(0.2, 11))]
    there = spread_ratio(pairs)
    back = spread_ratio([(b, a) for a, b in pairs])
    assert there.ratio == pytest.approx(1.0 / back.ratio)
    assert there.lo == pytest.approx(1.0 / back.hi)


def test_nothing_without_spread_has_a_ratio() -> None:
    assert spread_ratio([]) is None
    assert spread_ratio([(Spread(0.0, 5), Spread(1.0, 5))]) is None


@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_the_pooled_interval_holds_the_true_ratio_in_95_of_100(ratio: float) -> None:
    rng, runs, held = Random(2), 1500, 0
    for _ in range(runs):
        pairs = [
            (_spread(rng, ratio * scale, 4), _spread(rng, scale, 10))
            for scale in (0.001, 0.01, 0.2)
        ]
        found = spread_ratio(pairs)
        held += found.lo <= ratio <= found.hi
    assert 0.93 <= held / runs <= 0.97


def _spread(rng: Random, sigma: float, count: int) -> Spread:
    return Spread(math.sqrt(variance([rng.gauss(0, sigma) for _ in range(count)])), count - 1)
