"""Missing commits and cases, their order, and the time to measure each."""

from __future__ import annotations

import pytest

from perfci.commands.nightly import Gap, gaps, slowest_case, time_for


def test_a_gap_has_the_cases_that_a_commit_lacks_and_the_order_stays() -> None:
    known = {("new", "a"), ("new", "b"), ("middle", "b"), ("gone", "a")}
    assert gaps(("new", "middle", "old"), ("a", "b"), known) == (
        Gap("middle", ("a",)),
        Gap("old", ("a", "b")),
    )


def test_the_first_commit_may_take_all_the_time() -> None:
    assert time_for(Gap("a", ("x",)), 100.0, None) == 100.0
    assert slowest_case([]) is None


@pytest.mark.parametrize(
    ("cases", "left_s", "within_s"),
    [
        (2, 100.0, 50.0),  # half of what is left: others get their turn if it hangs
        (4, 100.0, 80.0),  # twice what it should take
        (8, 100.0, 100.0),  # never more than there is
        (9, 100.0, None),  # it would not be done
        (1, 0.0, None),
    ],
)
def test_a_commit_that_would_not_be_done_is_not_begun(
    cases: int, left_s: float, within_s: float | None
) -> None:
    slowest = slowest_case([(2, 20.0), (10, 30.0), (0, 5.0)])
    assert slowest == 10.0
    assert time_for(Gap("a", tuple("abcdefghi"[:cases])), left_s, slowest) == within_s
