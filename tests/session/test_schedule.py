"""The schedule: balanced, seeded, and bounded."""

from __future__ import annotations

from random import Random

from perfci.model.run import CaseRun
from perfci.model.settings import MeasureSettings
from perfci.session.schedule import (
    LEAD_IN_S,
    LEAST_BURSTS,
    LEAST_CALLS_WHEN_SLOW,
    burst_count,
    burst_order,
    has_cold_cache,
    is_whole,
    lead_in_s,
    least_rounds,
    starting_order,
    visiting_order,
)
from tests.verdict.workers import case, side


def test_bursts_alternate_as_abba() -> None:
    assert "".join(burst_order("AB", 4)) == "ABBAABBA"


def test_one_side_alone_has_its_bursts_in_a_row() -> None:
    assert "".join(burst_order("A", 3)) == "AAA"


def test_the_side_that_starts_first_alternates() -> None:
    assert [starting_order("AB", number)[0] for number in (1, 2, 3)] == ["A", "B", "A"]


def test_the_order_of_cases_is_drawn_and_can_be_drawn_again() -> None:
    cases = list(range(20))
    assert visiting_order(cases, Random(7)) == visiting_order(cases, Random(7))
    assert visiting_order(cases, Random(7)) != visiting_order(cases, Random(8))
    assert sorted(visiting_order(cases, Random(7))) == cases


def test_a_round_is_filled_with_bursts_and_slow_calls_are_few() -> None:
    assert burst_count(1e-5, 0.02, 0.8) == 40
    assert burst_count(0.1, 0.02, 0.8) == 8
    assert burst_count(5.0, 0.02, 0.8) == LEAST_CALLS_WHEN_SLOW
    assert burst_count(1e-5, 0.02, 0.02) == LEAST_BURSTS


def test_only_calls_shorter_than_a_burst_get_a_lead_in() -> None:
    assert lead_in_s(0.0003, 0.01) == LEAD_IN_S
    assert lead_in_s(0.01, 0.01) is None


def test_a_compiled_case_gets_rounds_with_a_warm_cache_after_the_cold_ones() -> None:
    assert least_rounds(5, 3, compiled=False) == 5
    assert least_rounds(5, 3, compiled=True) == 6
    cold = [has_cold_cache(number, 3, compiled=True) for number in range(1, 7)]
    assert cold == [True, True, True, False, False, False]
    assert has_cold_cache(1, 3, compiled=False)
    assert not has_cold_cache(2, 3, compiled=False)


def test_a_case_is_whole_with_its_least_workers_and_a_compiled_one_needs_more() -> None:
    settings = MeasureSettings(rounds=3, compile_rounds=2)
    for compiled, least in ((False, 3), (True, 5)):
        measured = CaseRun(case(compiled=compiled), side("head", "latency_p50", [1.0] * least))
        assert is_whole(measured, settings)
        assert not is_whole(CaseRun(measured.case, measured.workers[1:]), settings)
