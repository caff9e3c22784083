"""The scores themselves: what counts as found, and series that hold what they say."""

import numpy as np
import pytest

from benchmarks.trend.f1 import count_matches, score
from benchmarks.trend.labelled import Truth, labelled_real
from benchmarks.trend.synthetic import SHAPES, changed_series


@pytest.mark.parametrize(
    ("truths", "places", "matched"),
    [
        ([Truth(10, 10)], [12], 1),
        ([Truth(10, 10)], [13], 0),
        ([Truth(10, 10)], [9, 10, 11], 1),  # one change is found once
        ([Truth(10, 10), Truth(13, 13)], [12], 1),
        ([Truth(10, 10), Truth(13, 13)], [11, 12], 2),
        ([Truth(10, 40)], [25, 30], 1),  # a ramp told as two steps: one is false
        ([Truth(10, 40)], [43], 0),
    ],
)
def test_a_place_near_a_known_change_counts_once(truths, places, matched):
    assert count_matches(truths, places, margin=2) == matched


def test_f1_counts_what_is_false_and_what_is_missed():
    (one,) = [one for one in labelled_real() if one.name.endswith("tigerbeetle.csv")]

    found = score([(one, [15, 71, 10])], margin=2)

    assert (found.hits, found.false, found.missed) == (2, 1, 1)
    assert found.f1 == pytest.approx(2 / 3)


def test_the_real_series_have_the_labels_that_their_files_mark():
    by_name = {one.name: one for one in labelled_real()}

    assert len(by_name) == 8
    assert [t.begin for t in by_name["mozilla_talos/runs2.csv"].truths] == [899, 972, 1551]
    assert len(by_name["mozilla_talos/runs4.csv"].values) == 5133


def test_synthetic_series_hold_the_changes_that_they_name():
    steps = [one for one in changed_series(1, 2) if one.shape == "several steps"]

    assert {one.shape for one in changed_series(1, 1)} == set(SHAPES)
    for one in steps:
        for truth in one.truths:
            before = one.values[truth.begin - 10 : truth.begin].mean()
            after = one.values[truth.begin : truth.begin + 10].mean()
            assert abs(np.log(after / before)) > 0.008
