"""Numbers in small steps: what is unpacked is right to a hundred-thousandth."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perfci.report.drawing import pack

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def unpacked(values: list[float]) -> np.ndarray:
    packed = pack(np.array(values, dtype=np.float64))
    return np.cumsum(np.array(packed.deltas, dtype=object)) * packed.scale


@given(st.lists(st.floats(1e-9, 1e12), min_size=1, max_size=50))
def test_values_come_back_right_to_a_hundred_thousandth(values: list[float]) -> None:
    error = np.abs(unpacked(values) - values)
    allowed = max(float(np.median(values)) * 1e-5, max(values) * 2.0**-51)
    assert (error <= allowed).all()


@given(st.lists(st.integers(-(2**51), 2**51), min_size=1, max_size=50))
def test_whole_numbers_come_back_exactly(values: list[int]) -> None:
    assert list(unpacked([float(one) for one in values])) == values


@given(st.lists(FINITE, min_size=1, max_size=20))
def test_any_finite_numbers_can_be_packed(values: list[float]) -> None:
    packed = pack(np.array(values))
    assert packed.scale > 0
    assert all(abs(step) <= 2**54 for step in packed.deltas)


def test_a_year_of_a_quiet_metric_takes_few_bytes() -> None:
    values = 1.23e-3 * np.exp(np.random.default_rng(0).normal(0, 0.005, 365))
    text = ",".join(map(str, pack(values).deltas))
    assert len(text) < 6 * 365
