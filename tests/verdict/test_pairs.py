"""What a round says: the sides' own values, or their bursts side by side."""

from __future__ import annotations

import math

import pytest

from perfci.model.measuring import WorkerOutput
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy
from perfci.verdict.reduction import side_by_side
from perfci.verdict.sampled_comparisons import pair_values
from tests.verdict.workers import case, worker

METRIC = "latency_p50"


def of(side: str, value: float, *bursts: float | None, number: int = 1) -> WorkerOutput:
    return worker(side, number, {METRIC: value}, bursts={METRIC: bursts})


def values(base: WorkerOutput, head: WorkerOutput) -> tuple[float, float]:
    """Return the values of a round of three blocks, of one burst per side."""
    return pair_values(*side_by_side((base, head), (1, 1, 1)), METRIC)


def test_bursts_side_by_side_give_the_ratio_and_the_sides_their_level() -> None:
    base, head = values(of("base", 2.0, 1.0, 4.0, 2.0), of("head", 8.0, 1.1, 4.4, 2.2))
    assert head / base == pytest.approx(1.1)
    assert base * head == pytest.approx(16.0)


def test_a_burst_set_aside_leaves_out_its_neighbour_too() -> None:
    base, head = of("base", 2.0, None, 2.0, 2.0), of("head", 2.0, 50.0, 2.0, 2.0)
    assert values(base, head) == pytest.approx((2.0, 2.0))


@pytest.mark.parametrize("bursts", [(), (1.0, 2.0), (None, None, None)])
def test_without_bursts_side_by_side_the_values_are_the_sides_own(bursts: tuple) -> None:
    assert values(of("base", 2.0, 1.0, 1.0, 1.0), of("head", 3.0, *bursts)) == (2, 3)


def test_a_pair_keeps_its_log_ratio_instead_of_its_bursts() -> None:
    outputs = of("head", 2.0, 1.1, 1.1, 1.1, 1.1), of("base", 2.0, 1.0, 1.0, 1.0, 1.0)
    head, base = side_by_side(outputs, (2, 2))
    assert (head.bursts, base.bursts) == ({}, {})
    assert head.beside[METRIC] == -base.beside[METRIC] == pytest.approx(math.log(1.1))
    assert pair_values(base, head, METRIC)[1] / 2.0 == pytest.approx(math.sqrt(1.1))


def test_who_begins_alternates_and_a_drift_cancels() -> None:
    """In the order A B A B, B A B A: the later, the slower, by 10 % a burst."""
    steps = [1.1**step for step in range(8)]
    first = of("base", 1.0, steps[0], steps[2], steps[5], steps[7])
    second = of("head", 1.0, steps[1], steps[3], steps[4], steps[6])
    pair = side_by_side((first, second), (2, 2))
    assert pair[1].beside[METRIC] == pytest.approx(0.0)


def test_an_excluded_burst_is_left_out_beside_both_its_neighbours() -> None:
    pair = of("base", 1.0, 1.0, None, 1.0), of("head", 1.0, 5.0, 5.0, 1.2)
    assert side_by_side(pair, (3,))[1].beside[METRIC] == pytest.approx(math.log(5.0))
    assert side_by_side(pair, (1, 2))[1].beside[METRIC] == pytest.approx(math.log(5 * 1.2) / 2)


@pytest.mark.parametrize("blocks", [(), (2,), (1, 1, 1)])
def test_bursts_that_are_not_those_of_the_blocks_make_no_pair(blocks: tuple[int, ...]) -> None:
    pair = of("base", 2.0, 1.0, 1.0, 1.0), of("head", 3.0, 1.0, 1.0)
    one, other = side_by_side(pair, blocks)
    assert pair_values(one, other, METRIC) == (2.0, 3.0)


def test_a_machine_that_slows_within_each_round_hides_no_regression() -> None:
    """One side met the busy half of each round more often; its neighbours tell that."""
    base, head = [], []
    for number in range(1, 7):
        busy = [1.0 + 0.3 * ((index * number) % 3) for index in range(9)]
        own = 1.0 + 0.2 * (-1) ** number
        noise = 1.0 + 0.0005 * number
        slowed = [1.05 * noise * one for one in busy]
        sides = (
            of("base", 1.0, *busy, number=number),
            of("head", 1.05 * own, *slowed, number=number),
        )
        for outputs, output in zip((base, head), side_by_side(sides, (1,) * 9), strict=True):
            outputs.append(output)
    (row,) = (r for r in compare_case(case(), base, head, Policy(), paired=True))
    assert row.ratio == pytest.approx(1.05, rel=0.01)
    assert row.p is not None
    assert row.p < 1e-6
    own_values = [
        math.log(h.values[METRIC] / b.values[METRIC]) for b, h in zip(base, head, strict=True)
    ]
    assert max(own_values) - min(own_values) > 0.3
