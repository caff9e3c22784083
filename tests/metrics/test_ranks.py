"""What is made of each rank's steps: who is slow outside of collectives, and what they send."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.collector import Steps
from perfci.metrics.ranks import reading_of
from perfci.model.words import words

ALL_REDUCE = (("all_reduce", 4096.0), ("all_reduce", 4096.0))


def steps(
    *under_way: tuple[float, float],
    collectives: tuple[tuple[str, float], ...] = ALL_REDUCE,
    cores: tuple[int, ...] = (0, 1, 2, 3),
) -> Steps:
    return Steps(2, 10.0, 12.0, collectives, under_way, cores)


def test_the_rank_that_others_wait_for_is_the_slow_one() -> None:
    waits, slow = steps((10.0, 10.8), (11.0, 11.8)), steps((10.7, 10.8), (11.7, 11.8))
    reading = reading_of((waits, slow, waits))
    assert reading.values["rank_imbalance"] == pytest.approx(1.8 / ((1.8 + 0.4 + 0.4) / 3))
    assert reading.values["communication_share"] == pytest.approx((0.8 + 0.1 + 0.8) / 3)
    remark = reading.remarks["rank_imbalance"]
    assert words(remark) == "rank 1 is slower by 700 ms a step, outside of collectives"
    assert reading.remarks["latency_p50"] == remark


def test_collectives_that_nothing_else_overlaps_are_exposed() -> None:
    hidden = replace(steps((10.0, 10.4), (11.0, 11.4)), computing=((9.0, 10.3), (10.9, 12.0)))
    lost = replace(steps((10.3, 10.7), (11.5, 11.9)), computing=((9.0, 10.3), (10.9, 11.5)))
    assert (hidden.exposed(), lost.exposed()) == (pytest.approx(0.1), pytest.approx(0.8))
    reading = reading_of((hidden, lost))
    assert reading.values["exposed_communication"] == pytest.approx((0.05 + 0.4) / 2)
    assert words(reading.remarks["exposed_communication"]) == (
        "of 400 ms a step in collectives, 225 ms don't overlap with computing"
    )


def test_ranks_that_outnumber_their_cores_are_warned_of() -> None:
    assert not reading_of((steps(cores=(2, 3)), steps(cores=(2, 3)))).warnings
    assert not reading_of((steps(cores=(2,)), steps(cores=(3,)))).warnings
    (warning,) = reading_of((steps(cores=(3,)), steps(cores=(3,)))).warnings
    assert warning == "2 ranks share 1 core: set `cores` to as many or more"
