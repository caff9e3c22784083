"""The schedule: balanced, seeded, and bounded."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from perfci.config.keys import MeasureSettings
from perfci.measure.progress import case_states
from perfci.measure.selection import (
    LEAST_BURSTS,
    SAMPLE_S,
    block_order,
    is_whole,
    least_rounds,
    starting_order,
    turns,
    visiting_order,
)
from perfci.model.run import CaseRun
from tests.verdict.workers import case, side, worker


def test_the_side_that_begins_a_block_alternates() -> None:
    assert [block_order("AB", number)[0] for number in range(3)] == ["A", "B", "A"]


def test_the_side_that_starts_first_alternates() -> None:
    assert [starting_order("AB", number)[0] for number in (1, 2, 3)] == ["A", "B", "A"]


def test_the_order_of_cases_is_drawn_and_can_be_drawn_again() -> None:
    cases = list(range(20))
    assert visiting_order(cases, Random(7)) == visiting_order(cases, Random(7))
    assert visiting_order(cases, Random(7)) != visiting_order(cases, Random(8))
    assert sorted(visiting_order(cases, Random(7))) == cases


@pytest.mark.parametrize("call_s", [0.0, 1e-6, 1e-4, 6e-4, 9e-4, 2e-3, 4e-3, 1e-2, 0.09])
def test_a_round_is_filled_with_blocks_of_many_short_bursts(call_s: float) -> None:
    plan = turns(call_s, 0.0025, 0.3)
    assert plan.blocks % 2 == 0
    assert plan.bursts > 1
    burst_s = plan.block_s(call_s) / plan.bursts
    of_calls = plan.more * (call_s + SAMPLE_S)
    assert burst_s <= of_calls + max(0.0025, (1 + plan.lead_in) * (call_s + SAMPLE_S)) * 1.000001
    recorded_s = plan.blocks * plan.bursts * plan.calls * (call_s + SAMPLE_S)
    assert recorded_s * 1.000001 >= 0.3
    assert recorded_s <= max(0.4, 2 * LEAST_BURSTS * call_s)


@pytest.mark.parametrize(
    ("call_s", "period"),
    [
        *((call_s, period) for call_s in (5e-4, 9e-4, 2e-3, 4e-3, 1e-2) for period in range(2, 8)),
        *((2e-4, period) for period in (2, 3, 5, 12, 13, 24, 25)),  # a burst is twelve calls
    ],
)
def test_calls_that_are_slow_in_turn_are_recorded_as_often_as_they_come(
    call_s: float, period: int
) -> None:
    plan = turns(call_s, 0.0025, 0.3)
    for seed in range(5):
        recorded: Counter[int] = Counter()
        for number in range(5):
            rng, call = Random(f"{seed} {number}"), number
            for _ in range(plan.blocks):
                for lead_in in plan.lead_ins(rng):
                    recorded.update((call + lead_in + n) % period for n in range(plan.calls))
                    call += lead_in + plan.calls
        expected = recorded.total() / period
        assert all(0.75 < recorded[turn] / expected < 1.3 for turn in range(period))


@pytest.mark.parametrize("call_s", [1e-5, 4e-4, 4e-3, 1e-2, 0.5])
@pytest.mark.parametrize("burst_s", [0.0025, 2.0])
@pytest.mark.parametrize("most_calls", [10, 60])
def test_a_round_keeps_to_the_most_calls_that_its_work_can_make(
    call_s: float, burst_s: float, most_calls: int
) -> None:
    plan = turns(call_s, burst_s, 0.3).within(most_calls)
    drawn = [plan.lead_ins(Random(number)) for number in range(plan.blocks)]
    assert sum(map(sum, drawn)) + plan.blocks * plan.bursts * plan.calls <= most_calls
    assert plan.blocks * plan.bursts >= LEAST_BURSTS
    assert plan.calls >= 1
    assert turns(call_s, burst_s, 0.3).within(0) == turns(call_s, burst_s, 0.3)


def test_a_compiled_case_gets_rounds_with_a_warm_cache_after_the_cold_ones() -> None:
    assert least_rounds(5, 3, compiled=False) == 5
    assert least_rounds(5, 3, compiled=True) == 8
    assert least_rounds(2, 1, compiled=True) == 4


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("base_s", "head_s", "cold"),
    [(8.0, 8.0, 1), (8.0, 8.7, 1), (8.0, 8.9, 2), (8.0, 24.0, 1), (10.0, 8.0, 1)],
)
def test_a_head_that_looks_slower_to_compile_does_so_a_second_time(
    compiled: bool, base_s: float, head_s: float, cold: int
) -> None:
    (state,) = case_states((case(compiled=compiled),), ("base", "head"))
    assert state.cold_rounds(3) == (3 if compiled else 1)
    state.outputs["base"].append(worker("base", 1, {"compile_time": base_s}))
    state.outputs["head"].append(worker("head", 1, {"compile_time": head_s}))
    assert state.cold_rounds(1) == cold


def test_a_case_is_whole_with_its_least_workers_and_a_compiled_one_needs_more() -> None:
    settings = MeasureSettings(rounds=3, compile_rounds=2)
    for compiled, least in ((False, 3), (True, 5)):
        measured = CaseRun(case(compiled=compiled), side("head", "latency_p50", [1.0] * least))
        assert is_whole(measured, settings)
        assert not is_whole(CaseRun(measured.case, measured.workers[1:]), settings)
