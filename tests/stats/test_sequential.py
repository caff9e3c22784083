"""The group-sequential bound: Pocock's constants, and that intervals hold at every look."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from perfci.stats.evidence import look_confidence


@pytest.mark.parametrize(("looks", "constant"), [(2, 2.178), (3, 2.289), (5, 2.413), (10, 2.555)])
def test_equal_looks_have_pococks_constants(looks: int, constant: float) -> None:
    """Jennison & Turnbull 2000, table 2.1: looks that are equally far apart, from the first on."""
    confidence = look_confidence(1, looks)
    assert stats.norm.ppf(0.5 + confidence / 2.0) == pytest.approx(constant, abs=2e-3)


def test_one_look_has_the_plain_confidence() -> None:
    assert look_confidence(7, 7) == look_confidence(20, 5) == 0.95


def test_intervals_of_all_looks_hold_together() -> None:
    normal = np.random.default_rng(3).normal(size=(20_000, 20))
    bound = stats.norm.ppf(0.5 + look_confidence(5, 20) / 2.0)
    sums = np.abs(np.cumsum(normal, axis=1) / np.sqrt(np.arange(1, 21)))[:, 4:]
    assert (sums < bound).all(axis=1).mean() == pytest.approx(0.95, abs=0.005)
