"""Spreads: their upper bound, against a table."""

from __future__ import annotations

import math

import pytest

from perfci.stats.spread import upper_bound


def test_the_upper_bound_is_that_of_the_chi_squared_table() -> None:
    assert upper_bound(1.0, 9) == pytest.approx(math.sqrt(9 / 3.325), rel=1e-3)
