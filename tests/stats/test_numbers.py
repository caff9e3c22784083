"""Holm, quantiles, and summaries beside known values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfci.stats.evidence import holm, summarise
from perfci.stats.quantile import median, quantile, samples_needed

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


def test_holm_gives_the_textbook_example() -> None:
    # as R's p.adjust gives it
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()
    assert holm([0.02, 0.01], 4) == pytest.approx((0.06, 0.04))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_never_makes_a_p_smaller_nor_changes_their_order(p_values: list) -> None:
    adjusted = holm(p_values)
    assert all(p <= q <= 1.0 for p, q in zip(p_values, adjusted, strict=True))
    ordered = [adjusted[i] for i in np.argsort(p_values, kind="stable")]
    assert ordered == sorted(ordered)


@given(numbers, st.floats(0, 1))
def test_quantiles_are_numpys(values: list, q: float) -> None:
    assert quantile(values, q) == pytest.approx(float(np.quantile(values, q)), abs=1e-6)


def test_a_quantile_of_nothing_is_an_error_not_a_nan() -> None:
    with pytest.raises(ValueError, match="no values"):
        median([])
    with pytest.raises(ValueError, match="no share"):
        quantile([1.0], 1.5)


def test_a_percentile_needs_enough_samples_to_be_bounded() -> None:
    assert [samples_needed(q) for q in (0.5, 0.95, 0.99)] == [1, 59, 299]
    assert 1 - 0.99**299 >= 0.95 > 1 - 0.99**298


def test_the_centre_is_the_geometric_mean_with_a_t_interval_of_logs() -> None:
    values = (1.0, 2.0, 4.0, 1.5)
    logs = np.log(values)
    interval = stats.t.interval(0.95, 3, logs.mean(), stats.sem(logs))
    summary = summarise(values)
    assert summary.center == pytest.approx(stats.gmean(values))
    assert (summary.lo, summary.hi) == pytest.approx(tuple(np.exp(interval)))


def test_values_of_zero_get_the_arithmetic_mean_and_one_value_no_interval() -> None:
    assert summarise((0.0, 1.0, 2.0)).center == pytest.approx(1.0)
    assert summarise((3.0,)).center == 3.0
    assert summarise((3.0,)).lo is None
    assert summarise(()).center is None
    assert summarise((1.0, float("nan"))).center is None
