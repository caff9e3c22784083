"""Two modes: found where they are, hardly ever where they aren't."""

from __future__ import annotations

import numpy as np
import pytest

from perfci.stats.spread import two_modes

FAST_AND_SLOW = (1.0, 1.002, 1.101, 0.999, 1.1, 1.098, 1.001, 1.099)


def test_two_speeds_are_found_with_their_centres_and_shares() -> None:
    modes = two_modes(FAST_AND_SLOW)
    assert modes is not None
    assert (modes.low, modes.high) == pytest.approx((1.0, 1.1), rel=0.002)
    assert (modes.low_count, modes.high_count) == (4, 4)


@pytest.mark.parametrize(
    "values", [(), (1.0, 1.0, 2.0, 2.0), (1.0, 1.0, 0.0, 2.0, 2.0), (1.0, 1.0, np.nan, 2.0, 2.0)]
)
def test_too_few_or_senseless_values_have_no_modes(values: tuple) -> None:
    assert two_modes(values) is None


@pytest.mark.parametrize("size", [5, 10, 20])
def test_one_mode_is_hardly_ever_called_two(size: int) -> None:
    draws = np.random.default_rng(2).normal(size=(1500, size))
    seen = [two_modes(values) is not None for values in np.exp(0.02 * draws).tolist()]
    assert np.mean(seen) <= 0.025


def test_modes_ten_percent_apart_are_seen_in_ten_workers() -> None:
    rng = np.random.default_rng(3)
    logs = np.log(1.1) * (rng.random((500, 10)) < 0.5) + rng.normal(0, 0.007, (500, 10))
    assert np.mean([two_modes(v) is not None for v in np.exp(logs).tolist()]) >= 0.93
