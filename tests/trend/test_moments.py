"""Two moments of a history compared: dates, commits and runs of any age."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfci.errors import UsageError
from perfci.trend.moments import pairs_at
from tests.trend.histories import ENVIRONMENT, date, run, series, timelines, wobbling

NIGHTS = 60


def moved(case: str = "moved", ratio: float = 1.2) -> object:
    values = wobbling(NIGHTS, level=1e-3)
    values[30:] *= ratio
    return series(values, case)


def test_what_differs_beyond_the_noise_comes_first_with_its_direction() -> None:
    quiet = series(wobbling(NIGHTS, level=1e-3, seed=3), "quiet")
    faster = replace(moved("faster"), direction="higher")
    pairs = pairs_at([quiet, moved(), faster], timelines(NIGHTS), date(5)[:10], date(50)[:10])
    assert [pair.series.case for pair in pairs] == ["faster", "moved", "quiet"]
    assert [pair.worse for pair in pairs[:2]] == [False, True]
    assert [pair.beyond_noise for pair in pairs] == [True, True, False]
    assert pairs[1].ratio == pytest.approx(1.2, abs=0.05)
    assert 0.015 < (pairs[1].noise or 0.0) < 0.05  # 2.8 times 1 %, and 60 runs don’t tell it well
    assert (pairs[1].old_at, pairs[1].new_at) == (date(5)[:10], date(50)[:10])


def test_the_noise_is_what_ninety_five_of_a_hundred_quiet_pairs_stay_within() -> None:
    many = [series(wobbling(NIGHTS, rho=0.0, seed=seed), f"{seed:03}") for seed in range(400)]
    pairs = pairs_at(many, timelines(NIGHTS), date(10)[:10], date(40)[:10])
    outside = sum(pair.beyond_noise for pair in pairs)
    assert 5 <= outside <= 40  # of 400: 20 are expected


def test_a_date_takes_the_last_run_before_it_and_a_commit_only_its_own() -> None:
    gap = series(np.arange(1.0, 8.0), rows=np.array([0, 1, 2, 3, 5, 6, 7], dtype=np.int32))
    lines = timelines(8)
    (pair,) = pairs_at([gap], lines, date(4)[:10], "9999-01-01")
    assert (pair.old, pair.new) == (4.0, 7.0)
    assert pairs_at([gap], lines, run(4).sha, run(7).sha) == ()
    (pair,) = pairs_at([gap], lines, run(0).id, run(5).sha)
    assert (pair.old, pair.new) == (1.0, 5.0)


@pytest.mark.parametrize("moment", ["1999-01-01", "ffff", "000", "", "yesterday"])
def test_a_moment_without_a_run_is_an_error(moment: str) -> None:
    with pytest.raises(UsageError, match="no run of the history is at"):
        pairs_at([moved()], timelines(NIGHTS), date(5)[:10], moment)


def test_values_that_have_no_ratio_are_compared_by_difference() -> None:
    zero = series(np.r_[np.zeros(10), np.ones(10)], "breaks")
    (pair,) = pairs_at([zero], timelines(20), date(2)[:10], date(15)[:10])
    assert (pair.ratio, pair.beyond_noise, pair.noise) == (None, True, None)
    assert (
        pairs_at([zero], {ENVIRONMENT: timelines(20)[ENVIRONMENT]}, date(2)[:10], date(3)[:10])[
            0
        ].beyond_noise
        is False
    )
