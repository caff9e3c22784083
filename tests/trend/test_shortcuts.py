"""Shortcuts that most series of a large history take give what the whole way gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from perfci.trend import TrendSettings, change_points
from perfci.trend.change_points import examine_all

NIGHTS = 60


def histories(seed: int, size: int) -> list[NDArray[Any]]:
    """Return noise alone, and with steps, walks, spikes, ramps, autocorrelation and gaps."""
    rng = np.random.default_rng(seed)
    nights = np.arange(size)
    many = []
    for number in range(42):
        noise = 0.01 * rng.standard_normal(size)
        at, jump = rng.integers(4, size - 4), rng.uniform(-0.08, 0.08)
        moves = (
            0.0 * nights,
            jump * (nights >= at),
            jump / 3 * (nights >= at),
            np.cumsum(0.003 * rng.standard_normal(size)),
            0.2 * (rng.random(size) < 0.02),
            jump * np.clip((nights - at) / 40, 0.0, 1.0),
            lfilter([0.01], [1.0, -0.6], rng.standard_normal(size)),
        )
        values = np.exp(noise + moves[number % len(moves)])
        many.append(values if number % 2 else values[rng.random(size) < 0.9])
    return many


@pytest.mark.parametrize("size", [40, 120, 365])
def test_a_series_without_a_strong_candidate_has_no_move(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = TrendSettings()
    many = [values[:end] for values in histories(size, size) for end in range(size - 4, size + 1)]
    quick = examine_all(many, settings)
    monkeypatch.setattr(change_points, "STRONGEST_CANDIDATE", 0.0)
    assert examine_all(many, settings) == quick
    assert any(quick)
    monkeypatch.setattr(change_points, "STRONGEST_CANDIDATE", 99.0)
    assert not any(examine_all(many, settings))
