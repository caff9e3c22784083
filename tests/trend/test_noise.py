"""The noise is told apart from the steps in it, also where there are few nights."""

from __future__ import annotations

import numpy as np
import pytest

from perfci.trend.detect.noise import prepare
from perfci.trend.detect.segmenting import segment

SEEDS = range(60)


def stepped(seed: int, before: int, after: int, size: float) -> np.ndarray:
    values = np.exp(np.random.default_rng(seed).normal(0.0, 0.01, before + after))
    values[before:] *= 1.0 + size
    return values


@pytest.mark.parametrize(("before", "after"), [(10, 10), (15, 15), (20, 10)])
def test_a_step_is_not_taken_for_correlation(before: int, after: int) -> None:
    for size in (0.0, 0.12, 0.5):
        noise = [prepare(stepped(seed, before, after, size)) for seed in SEEDS]
        assert np.median([one.rho for one in noise]) < 0.6, size
        assert np.median([one.sigma for one in noise]) < 0.02, size


def test_a_larger_step_is_named_at_least_as_often() -> None:
    named = [
        sum(
            any(abs(one.place - 10) <= 2 for one in segment(prepare(v), 0.001).splits)
            for v in (stepped(seed, 10, 10, size) for seed in SEEDS)
        )
        for size in (0.03, 0.12, 0.30)
    ]
    assert named == sorted(named)
    assert named[-1] >= 0.95 * len(SEEDS)


def test_trimming_costs_normal_noise_nothing() -> None:
    values = np.exp(np.random.default_rng(3).normal(0.0, 0.01, 4000))
    found = prepare(values)
    assert found.sigma == pytest.approx(0.01, rel=0.05)
    assert found.rho < 0.1
