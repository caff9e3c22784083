"""Too few rounds: no interval, no verdict, however alike they fell."""

from __future__ import annotations

import pytest

from perfci.model.measuring import DECIDING_ROUNDS
from perfci.model.report import Comparison
from perfci.verdict.case_comparisons import compare_case, number_rows
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust, suspects
from perfci.verdict.stopping import undecided_metrics
from tests.verdict.workers import case, side

POLICY = Policy()
LUCKY = (1.0, 1.0001, 0.9999, 1.0001, 0.9999)


def compared(metric: str, ratio: float, rounds: int, *, paired: bool = True) -> Comparison:
    base = [0.01 * luck for luck in LUCKY]
    head = [ratio * value for value in [*base[1:], base[0]]][:rounds]
    sides = side("base", metric, base[:rounds] if paired else base), side("head", metric, head)
    (row,) = adjust(compare_case(case(), *sides, POLICY, paired=paired), POLICY)
    return row


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("ratio", [1.0, 0.5, 3.0])
@pytest.mark.parametrize("rounds", [2, 3, 4])
def test_rounds_that_fell_alike_are_no_certainty(rounds: int, ratio: float, paired: bool) -> None:
    row = compared("latency_p50", ratio, rounds, paired=paired)
    assert row.status == "inconclusive"
    assert row.ratio == pytest.approx(ratio, rel=0.01)
    assert (row.ratio_lo, row.ratio_hi, row.p, row.p_adjusted, row.detectable) == (None,) * 5
    assert (row.head.lo, row.head.hi) == (None, None)
    what = "rounds" if paired else "workers"
    assert row.warnings[-1].startswith(f"{rounds} {what} ")
    assert row.warnings[-1].endswith("too few for an interval or a verdict; 5 rounds are needed")
    verdict = decide([row], (), POLICY)
    assert verdict.status == "inconclusive"
    assert "5 rounds are needed" in verdict.reasons[0]


def test_as_many_rounds_as_it_takes_have_an_interval_and_a_verdict() -> None:
    assert DECIDING_ROUNDS == 5
    for ratio, status in ((1.0, "unchanged"), (0.5, "improved"), (3.0, "regressed")):
        row = compared("latency_p50", ratio, DECIDING_ROUNDS)
        assert (row.status, row.ratio_lo is None, row.head.lo is None) == (status, False, False)


def test_two_rounds_of_the_same_value_are_not_unchanged() -> None:
    sides = (side(name, "latency_p50", [1.0, 1.0]) for name in ("base", "head"))
    (row,) = adjust(compare_case(case(), *sides, POLICY, paired=True), POLICY)
    assert (row.status, row.ratio, row.ratio_lo) == ("inconclusive", 1.0, None)


def test_compile_time_names_the_setting_that_gives_it_more_rounds() -> None:
    row = compared("compile_time", 1.3, 2)
    assert row.warnings[-1].endswith("; 5 rounds (`compile_rounds`) are needed")


def test_a_gating_metric_is_measured_on_and_a_cold_start_where_it_looks_slower() -> None:
    def wanted(metric: str, ratio: float) -> bool:
        return bool(undecided_metrics([compared(metric, ratio, 3)], POLICY, 1))

    assert wanted("latency_p50", 1.0)
    assert wanted("cold_start", 1.2)
    assert not wanted("cold_start", 1.0)
    assert not wanted("cold_start", 0.5)


def test_a_check_of_few_workers_still_suspects_what_looks_slower() -> None:
    assert suspects([compared("latency_p50", 1.2, 3, paired=False)], POLICY)


def test_the_numbers_of_few_workers_have_no_interval() -> None:
    few, enough = (
        number_rows(case(), side("head", "latency_p50", LUCKY[:count]), POLICY)[0].head
        for count in (4, 5)
    )
    assert (few.center, few.lo, few.hi) == (pytest.approx(1.0, rel=1e-3), None, None)
    assert enough.lo < enough.center < enough.hi
