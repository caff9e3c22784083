"""Planning the promise's test, and judging it: it can be kept, broken, or untested."""

from __future__ import annotations

from dataclasses import replace

from perfci.calibrate.promise import PromiseCandidate, PromisePlan, judge_promise, plan_promise
from perfci.model.report import Comparison
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import default_policy
from tests.verdict.identical import identical

ALPHA = 0.01 / 6
EASY = PromiseCandidate("easy", 0.03, 0.004, 1.0)
HARD = PromiseCandidate("hard", 0.06, 0.012, 1.0)


def test_the_largest_promise_is_injected_where_the_time_allows_it() -> None:
    plan = plan_promise([EASY, HARD], ALPHA, 1000.0)
    assert plan.injected == 0.06
    assert set(plan.needed) == {"easy", "hard"}
    assert plan.needed["easy"] <= plan.needed["hard"] == plan.rounds
    assert plan.left_out == ()


def test_what_does_not_fit_the_time_is_left_out_and_named() -> None:
    whole = plan_promise([EASY, HARD], ALPHA, 1000.0)
    plan = plan_promise([EASY, HARD], ALPHA, whole.rounds * 2.0 - 0.5)
    assert (set(plan.needed), plan.left_out) == ({"hard"}, ("easy",))
    assert plan_promise([EASY, HARD], ALPHA, 1.0) is None


def test_what_a_sweep_takes_besides_its_rounds_counts() -> None:
    whole = plan_promise([HARD], ALPHA, 1000.0)
    assert plan_promise([HARD], ALPHA, whole.rounds * 1.0) is not None
    assert plan_promise([HARD], ALPHA, whole.rounds * 3.5, starting_s=3.0) is None
    assert plan_promise([HARD], ALPHA, whole.rounds * 4.0, starting_s=3.0) is not None


def test_a_promise_is_never_tested_only_on_cases_that_were_promised_less() -> None:
    slow = replace(HARD, round_s=100.0)
    plan = plan_promise([EASY, slow], ALPHA, 60.0)
    assert (plan.injected, set(plan.needed), plan.left_out) == (0.03, {"easy"}, ("hard",))


def test_no_fewer_rounds_than_a_change_needs_to_be_believed() -> None:
    assert plan_promise([EASY], ALPHA, 1000.0, least=9).rounds == 9


def test_a_slow_down_that_is_found_keeps_the_promise() -> None:
    promise = judge_promise(_plan(), {"encoder[batch=1]": _row(slow_down=0.06)}, ALPHA)
    assert (promise.status, promise.found, promise.counted) == ("kept", 1, 1)


def test_a_slow_down_that_is_missed_breaks_the_promise() -> None:
    promise = judge_promise(_plan(), {"encoder[batch=1]": _row(slow_down=0.0)}, ALPHA)
    assert (promise.status, promise.found, promise.counted) == ("not_kept", 0, 1)
    assert "encoder[batch=1]" in promise.reason


def test_a_speed_up_is_not_the_slow_down_that_was_injected() -> None:
    promise = judge_promise(_plan(), {"encoder[batch=1]": _row(slow_down=-0.06)}, ALPHA)
    assert promise.status == "not_kept"


def test_too_few_rounds_count_for_nothing_whatever_they_found() -> None:
    for slow_down in (0.0, 0.3):
        row = _row(slow_down=slow_down, rounds=6)
        promise = judge_promise(_plan(), {"encoder[batch=1]": row}, ALPHA)
        assert (promise.status, promise.counted) == ("not_checked", 0)


def test_a_slow_down_larger_than_asked_is_no_test() -> None:
    promise = judge_promise(_plan(), {"encoder[batch=1]": _row(slow_down=0.5)}, ALPHA)
    assert (promise.status, promise.counted) == ("not_checked", 0)
    assert "larger than asked" in promise.reason


def test_a_case_that_was_not_measured_counts_for_nothing() -> None:
    assert judge_promise(_plan(), {}, ALPHA).status == "not_checked"


def _plan() -> PromisePlan:
    return PromisePlan(0.06, 8, {"encoder[batch=1]": 8}, ())


def _row(*, slow_down: float, rounds: int = 8) -> Comparison:
    pairs = identical(rounds=rounds, slow_down=slow_down, spread=0.005)
    rows = compare_case(pairs.case, pairs.base, pairs.head, default_policy(), paired=True)
    return next(row for row in rows if row.metric == "latency_p50")
