"""The noise is told apart from the steps in it, also where there are few nights."""

from __future__ import annotations

import numpy as np
import pytest

from perfci.trend import TrendSettings
from perfci.trend.change_points import examine_all, segment
from perfci.trend.noise import prepare
from tests.trend.histories import examine, noise

SEEDS = range(60)
SIGMA = 0.01


def windows(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return three times the noise in windows of 30 runs, a fifth of all."""
    loud = np.repeat(rng.random(size // 30 + 1) < 0.2, 30)[:size]
    return SIGMA * rng.standard_normal(size) * np.where(loud, 3.0, 1.0)


def modes(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return two modes 4 % apart, each staying for eight runs in the mean."""
    high = np.cumsum(rng.random(size) < 1 / 8) % 2
    return 0.04 * high + SIGMA * rng.standard_normal(size)


def stepped(seed: int, before: int, after: int, size: float) -> np.ndarray:
    values = np.exp(np.random.default_rng(seed).normal(0.0, 0.01, before + after))
    values[before:] *= 1.0 + size
    return values


@pytest.mark.parametrize(("before", "after"), [(10, 10), (15, 15), (20, 10)])
def test_a_step_is_not_taken_for_correlation(before: int, after: int) -> None:
    for size in (0.0, 0.12, 0.5):
        prepared = [prepare(stepped(seed, before, after, size)) for seed in SEEDS]
        assert np.median([one.rho for one in prepared]) < 0.6, size
        assert np.median([one.sigma for one in prepared]) < 0.02, size


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


def swinging(seed: int, swing: np.ndarray, size: float = 0.0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0.0, 0.01, len(swing))
    return np.exp(swing + noise + size * (np.arange(len(swing)) >= len(swing) // 2))


def test_a_cycle_hides_no_step_that_stays_for_many_cycles() -> None:
    cycle = 0.015 * np.sin(2 * np.pi * np.arange(365) / 20)
    named = [
        [one.place for one in segment(prepare(swinging(seed, cycle, 0.05)), 0.001).splits]
        for seed in range(20)
    ]
    assert sum(any(abs(place - 182) <= 5 for place in places) for places in named) >= 19
    assert sum(map(len, named)) <= 22


@pytest.mark.parametrize("size", [730, 1000])
def test_a_monthly_cycle_is_no_change_however_long_the_series(size):
    cycle = 0.02 * np.sin(2 * np.pi * np.arange(size) / 30)

    assert examine(np.exp(cycle + 0.01 * noise(0.0, size, 3)), TrendSettings()) == ()


def test_the_noise_of_a_loud_window_counts_there(monkeypatch):
    rng = np.random.default_rng(20261128)
    many = [np.exp(windows(rng, 365)) for _ in range(30)]

    named = sum(len(moves) for moves in examine_all(many, TrendSettings()))
    monkeypatch.setattr("perfci.trend.noise.LOUDER", 99.0)
    before = sum(len(moves) for moves in examine_all(many, TrendSettings()))

    assert 2 * named < before
