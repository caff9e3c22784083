"""Values that a benchmark's own metric may give, and that few floats can be computed with."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfci.trend import LoadedHistory, LoadedRun, LoadedSeries, SeriesKey
from perfci.trend.changes import analyse
from perfci.trend.timelines import arrange
from tests.trend.histories import ENVIRONMENT, run, wobbling

LEFT_OUT = "values beyond 1e+150 or its inverse are left out."


def history(*many: list[float]) -> LoadedHistory:
    size = max(map(len, many))
    runs = tuple(LoadedRun(ENVIRONMENT, run(i)) for i in range(size))
    series = tuple(
        LoadedSeries(
            SeriesKey(ENVIRONMENT, f"case{i}", "score"),
            "s",
            "lower",
            np.arange(len(values)),
            np.array(values, dtype=np.float64),
        )
        for i, values in enumerate(many)
    )
    sources = np.zeros(size, dtype=int)
    return LoadedHistory({ENVIRONMENT: {}}, runs, series, [{}], sources)


@pytest.mark.parametrize(
    "values",
    [
        [1e-300] * 30 + [1e300] * 30,
        [1e308] * 30 + [1.7e308] * 30,
        [1.7e308, -1.7e308] * 30,
        [5e-324] * 60,
    ],
)
def test_a_series_beyond_what_can_be_computed_with_is_left_out_and_named(values):
    good = wobbling(60).tolist()
    good[40:] = [1.5 * value for value in good[40:]]

    arranged = arrange(history(good, values))
    analysed = analyse(arranged.series, arranged.timelines, now="2026-01-01T00:00:00Z")

    assert [one.key.case for one in arranged.series] == ["case0"]
    assert [change.series.case for change in analysed.changes] == ["case0"]
    assert arranged.notes == (f"{ENVIRONMENT}: case1 score: {LEFT_OUT}",)


@pytest.mark.parametrize("absurd", [1e300, -1e300, 1e-300])
def test_one_absurd_night_hides_no_step(absurd):
    values = wobbling(60).tolist()
    values[40:] = [1.2 * value for value in values[40:]]
    values[25] = absurd

    arranged = arrange(history(values))
    (change,) = analyse(arranged.series, arranged.timelines, now="2026-01-01T00:00:00Z").changes

    assert (change.commits[1], change.worse) == (f"{40:040x}", True)
    assert arranged.notes == (f"{ENVIRONMENT}: case0 score: {LEFT_OUT}",)


def test_zeros_are_no_extreme():
    arranged = arrange(history([0.0] * 20 + [3.0] * 20))
    assert (len(arranged.series), arranged.notes) == (1, ())


EXTREME = st.sampled_from([1e-150, 1e-120, 1e-9, 1.0, 2.0, 1e9, 1e120, 1e150])


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(st.tuples(EXTREME, st.integers(1, 30)), min_size=1, max_size=6),
        min_size=5,
        max_size=6,
    ),
    st.booleans(),
    st.integers(0, 2),
)
def test_whatever_is_let_in_is_computed_with(stretches, signed, seed):
    noise = np.random.default_rng(seed)
    many = []
    for parts in stretches:
        values = np.repeat([value for value, _ in parts], [count for _, count in parts])
        values *= np.exp(0.01 * np.minimum(noise.standard_normal(len(values)), 0.0))
        values = np.maximum(values, 1e-150)
        many.append((values * np.where(np.arange(len(values)) % 2 & signed, -1, 1)).tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arranged = arrange(history(*many))
        assert len(arranged.series) == len(many)
        now = "2026-01-01T00:00:00Z"
        analysed = analyse(arranged.series, arranged.timelines, now=now)

    numbers = [x for one in analysed.changes for x in (one.difference, one.ratio_lo, one.ratio_hi)]
    numbers += [x for one in analysed.drifts for x in (one.ratio, one.ratio_lo, one.ratio_hi)]
    assert all(np.isfinite(x) for x in numbers if x is not None)
