"""The verdict and its reasons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.finding import IN_WORDS, LOOKS_SLOWER, finding
from perfci.model.report import Comparison, Estimate
from perfci.units import format_change
from perfci.verdict.case_comparisons import compare_case, number_rows
from perfci.verdict.decision import decide, failure_rows, placeholder, require_gate
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from tests.verdict.workers import both, case, failure, held_to, side, worker

POLICY = Policy()


def rows(metric: str, ratio: float, noise: float = 1.0) -> tuple[Comparison, ...]:
    compared = compare_case(case(), *both(metric, ratio, noise=noise), POLICY, paired=True)
    return adjust(compared, POLICY)


def new_break() -> tuple[Comparison, ...]:
    sides = side("base", "graph_breaks", [0.0]), side("head", "graph_breaks", [1.0])
    return adjust(compare_case(case(), *sides, POLICY, paired=True), POLICY)


def test_a_gating_regression_fails_and_says_by_how_much() -> None:
    verdict = decide(rows("latency_p50", 1.123), (), POLICY)
    assert verdict.status == "fail"
    assert verdict.reasons == ("encoder[batch=1]: latency_p50 +12.3 % (threshold 5 %)",)


def test_the_worst_regression_is_named_first_and_counts_before_shares() -> None:
    found = (*rows("cold_start", 1.2), *rows("latency_p50", 1.3), *new_break())
    metrics = [reason.split()[1] for reason in decide(found, (), POLICY).reasons]
    assert metrics == ["graph_breaks", "latency_p50", "cold_start"]
    assert "graph_breaks +1 (threshold 0)" in decide(found, (), POLICY).reasons[0]


@pytest.mark.parametrize("metric", ["cold_start", "latency_p99", "latency_p50"])
def test_sides_of_different_length_have_no_pairs_to_look_at(metric: str) -> None:
    sides = (
        side("base", metric, [1.0, 1.3, 0.7, 1.1, 0.9, 1.0]),
        side("head", metric, [1.2, 1.5, 0.8]),
    )
    compared = compare_case(case(), *sides, POLICY, paired=False, base_sessions=(6,))
    (row,) = adjust(compared, POLICY)
    assert (row.status, row.gate) == ("inconclusive", "fail")
    assert decide([row], (), POLICY).status != "fail"


def test_an_improvement_never_fails() -> None:
    assert decide(rows("latency_p50", 0.5), (), POLICY).status == "pass"


def test_a_regression_that_only_warns_passes_with_a_warning() -> None:
    verdict = decide(rows("device_time_p50", 1.5), (), POLICY)
    assert verdict.status == "pass"
    assert verdict.reasons[0].startswith("warning: encoder[batch=1]: device_time_p50 +50")


def test_head_failing_what_base_does_is_an_error() -> None:
    verdict = decide(rows("latency_p50", 1.0), (failure("b", "head"),), POLICY)
    assert verdict.status == "error"
    assert verdict.reasons == ("b: head failed in setup (RuntimeError): boom",)


def test_a_regression_beats_an_error_and_keeps_its_reason() -> None:
    verdict = decide(rows("latency_p50", 1.2), (failure("b", "head"),), POLICY)
    assert verdict.status == "fail"
    assert len(verdict.reasons) == 2


def test_a_case_that_fails_on_both_sides_is_an_error_unless_it_may_be_broken() -> None:
    steady = rows("latency_p50", 1.0)
    twice = (failure("b[mode=x]", "base"), failure("b[mode=x]", "head"))
    verdict = decide(steady, twice, POLICY)
    assert verdict.status == "error"
    assert verdict.reasons == (
        "b[mode=x]: fails on both sides: head failed in setup (RuntimeError): boom",
    )
    for name in ("b", "b[mode=x]", "b[mode=*"):
        allowed = decide(steady, twice, replace(POLICY, allow_broken=(name,)))
        assert (allowed.status, allowed.reasons) == ("pass", verdict.reasons)
    assert decide(steady, twice, replace(POLICY, allow_broken=("b[mode=y]",))).status == "error"
    assert decide(steady, twice[1:], replace(POLICY, allow_broken=("b",))).status == "error"
    assert decide((), twice, replace(POLICY, allow_broken=("b",))).status == "error"
    skipped = tuple(replace(failed, kind="test_skipped") for failed in twice)
    assert decide(steady, skipped, POLICY).status == "pass"


def test_a_case_that_fails_on_base_is_inconclusive_unless_base_does_not_have_it() -> None:
    steady = rows("latency_p50", 1.0)
    twice = (failure("b", "base"), failure("b", "head"))
    assert decide(steady, twice[:1], POLICY).status == "inconclusive"
    new = failure_rows(twice[:1], (), POLICY, ("b",))
    assert [row.status for row in new] == ["new"]
    assert decide((*steady, *new), twice[:1], POLICY).status == "pass"
    assert [row.status for row in failure_rows(twice, ("c", "b"), POLICY)] == ["failed", "removed"]
    assert [row.status for row in failure_rows(twice[:1], (), POLICY)] == ["failed"]
    assert [row.status for row in failure_rows(twice, (), POLICY, ("b",))] == ["failed"]
    assert failure_rows(twice[:1], (), POLICY, measured={"b"}) == ()
    assert [row.status for row in failure_rows(twice[1:], (), POLICY)] == ["failed"]


def test_an_undecided_metric_makes_the_verdict_inconclusive_only_where_policy_says_so() -> None:
    assert decide(rows("latency_p50", 1.03, 60.0), (), POLICY).status == "inconclusive"
    assert decide(rows("cold_start", 1.03, 60.0), (), POLICY).status == "pass"
    lenient = replace(POLICY, metrics=held_to("latency_p50", 0.05, "fail"))
    assert decide(rows("latency_p50", 1.03, 60.0), (), lenient).status == "pass"


def test_an_undecided_metric_that_cannot_be_worse_is_no_doubt() -> None:
    (row,) = rows("latency_p50", 0.90, 30.0)
    assert row.ratio_hi < 1.05
    assert decide((replace(row, status="inconclusive"),), (), POLICY).status == "pass"


def test_nothing_measured_is_an_error() -> None:
    assert decide((), (), POLICY).status == "error"
    waiting = placeholder(
        "a", "inconclusive", POLICY, finding(IN_WORDS, text="the time budget ended")
    )
    assert decide((waiting,), (), POLICY).status == "error"
    assert decide((waiting, *rows("cold_start", 1.0)), (), POLICY).status == "inconclusive"


def test_what_was_not_measured_is_not_compared_even_where_doubt_passes() -> None:
    lenient = replace(POLICY, metrics=held_to("latency_p50", 0.05, "fail"))
    waiting = placeholder(
        "a", "inconclusive", POLICY, finding(IN_WORDS, text="the time budget ended")
    )
    fresh = placeholder("b", "new", POLICY, finding(IN_WORDS, text="base hasn't got it"))
    verdict = decide((waiting, fresh), (), lenient)
    assert verdict.status == "inconclusive"
    assert verdict.reasons == ("nothing to compare with: 1 new",)
    without_pairs = replace(waiting, base=Estimate(None, None, None, 0, 0))
    assert decide((without_pairs,), (), lenient).reasons == ("nothing was measured",)


def test_what_cannot_be_compared_is_an_answer() -> None:
    stranger = placeholder("a", "not_comparable", POLICY, finding(IN_WORDS, text="another GPU"))
    verdict = decide((stranger, *rows("latency_p50", 1.0)), (), POLICY)
    assert verdict.status == "inconclusive"
    assert verdict.reasons == ("a: not comparable (another GPU)",)
    fresh = placeholder("a", "new", POLICY, finding(IN_WORDS, text="no baseline yet"))
    assert decide((fresh,), (), POLICY).reasons == ("nothing to compare with: 1 new",)
    assert decide((fresh, *rows("latency_p50", 1.0)), (), POLICY).status == "pass"


def test_numbers_of_a_side_measured_alone_pass() -> None:
    numbers = number_rows(case(), both("latency_p50", 1.0)[1], POLICY)
    assert decide(numbers, (), POLICY).status == "pass"


def test_an_interrupted_session_passes_nothing_but_still_fails_what_it_found() -> None:
    assert decide(rows("latency_p50", 1.0), (), POLICY, interrupted=True).status == "inconclusive"
    assert decide(rows("latency_p50", 1.2), (), POLICY, interrupted=True).status == "fail"


def test_an_unconfirmed_regression_says_so() -> None:
    verdict = decide(rows("latency_p50", 1.2), (), POLICY, unconfirmed=True)
    assert verdict.status == "fail"
    assert verdict.reasons[1].startswith("unconfirmed")


def test_a_gating_metric_of_the_benchmarks_own_that_is_no_number_on_head_is_an_error() -> None:
    lost = placeholder(
        "a", "inconclusive", POLICY, finding("base-only", why="the benchmark gave nan")
    )
    estimate = Estimate(1.0, 1.0, 1.0, 5, 100)
    lost = replace(lost, metric="loss", gate="fail", base=estimate)
    verdict = decide((lost,), (), POLICY)
    assert verdict.status == "error"
    assert verdict.reasons == ("a: loss (only base has a value: the benchmark gave nan)",)
    assert decide((replace(lost, gate="warn"),), (), POLICY).status == "pass"
    assert decide((replace(lost, metric="compile_time"),), (), POLICY).status == "pass"


def test_a_report_that_nothing_could_have_failed_is_no_pass() -> None:
    """``gate = "info"`` on every metric read "no regression" beside a slow-down of 260 %."""
    quiet = tuple(replace(row, gate="info") for row in rows("latency_p50", 3.6))
    verdict = require_gate(decide(quiet, (), POLICY), quiet)
    assert verdict.status == "inconclusive"
    assert verdict.reasons == ('nothing gates: no compared metric has gate = "fail"',)
    both = (*quiet, *rows("cold_start", 1.0))
    assert require_gate(decide(both, (), POLICY), both).status == "pass"
    assert require_gate(decide((), (), POLICY), ()) == decide((), (), POLICY)


def test_an_accuracy_that_head_cannot_be_asked_for_leaves_the_verdict_open() -> None:
    """Casts that keep head from running in float64 made the row one for information."""
    base = side("base", "accuracy_loss", [1.0] * 6)
    why = {"accuracy_loss": "no double here"}
    head = tuple(worker("head", number, {}, missing=why) for number in range(1, 7))
    lost = compare_case(case(), base, head, POLICY, paired=True)
    assert decide((*rows("latency_p50", 1.0), *lost), (), POLICY).status == "inconclusive"


@pytest.mark.parametrize("ratio", [1.3, 0.7])
@pytest.mark.parametrize(("metric", "name"), [("latency_p95", "P95"), ("latency_p99", "P99")])
def test_a_tail_that_follows_the_median_is_shown_in_its_row(
    ratio: float, metric: str, name: str
) -> None:
    median, tail = rows("latency_p50", ratio)[0], rows(metric, ratio * 1.04)[0]
    median, follower = adjust((median, tail), POLICY)
    assert f"{name} {format_change(tail.ratio)}" in median.warnings
    assert follower.follows
    verdict = decide((median, follower), (), POLICY)
    assert [known.metric for known in verdict.findings] == ["latency_p50"] * (ratio > 1)
    assert adjust((median, follower), POLICY) == (median, follower)


@pytest.mark.parametrize("median", [1.0, 1.1, 0.8])
def test_a_tail_that_is_worse_than_the_median_fails_by_itself(median: float) -> None:
    compared = adjust((*rows("latency_p50", median), *rows("latency_p95", 1.3)), POLICY)
    verdict = decide(compared, (), POLICY)
    assert verdict.status == "fail"
    assert "latency_p95" in {known.metric for known in verdict.findings}


@pytest.mark.parametrize("direction", [1.0, -1.0])
@pytest.mark.parametrize(
    ("ratios", "slower"),
    [
        ([1.745, 1.6, 1.9], True),  # fewer rounds than an interval needs
        ([1.745, 1.6, 1.03], False),
        ([3.9], False),
        ([4.1], True),
        ([1.25, 1.16, 1.3, 1.08, 1.2, 1.22], True),  # below 1 % alone, and undecided among many
        ([1.25, 0.9, 1.4, 0.95, 1.2, 1.0], False),
        ([1.04, 1.041, 1.039, 1.04, 1.0405, 1.0395], False),  # below the threshold
    ],
)
def test_an_undecided_row_that_looks_slower_is_a_reason_of_its_own(
    ratios: list[float], slower: bool, direction: float
) -> None:
    shown = [ratio**direction for ratio in ratios]
    compared = compare_case(
        case(),
        side("base", "latency_p50", [0.01] * len(shown)),
        side("head", "latency_p50", [0.01 * ratio for ratio in shown]),
        POLICY,
        paired=True,
    )
    verdict = decide(adjust(compared, POLICY, 50.0), (), POLICY)
    assert verdict.looks_slower is (slower and direction > 0)
    if verdict.looks_slower:
        assert verdict.findings[0].code == LOOKS_SLOWER


@pytest.mark.parametrize("metric", ["latency_p95", "latency_mean", "cold_start", "early_calls"])
@pytest.mark.parametrize(("ratios", "slower"), [([8.0, 9.0], True), ([8.0, 9.0, 1.0], False)])
def test_any_gating_metric_that_is_worse_in_each_of_few_rounds_looks_slower(
    metric: str, ratios: list[float], slower: bool
) -> None:
    shown = [0.01 * ratio for ratio in ratios]
    sides = side("base", metric, [0.01] * len(shown)), side("head", metric, shown)
    (row,) = adjust(compare_case(case(), *sides, POLICY, paired=True), POLICY)
    assert decide((row,), (), POLICY).looks_slower is slower


@pytest.mark.parametrize("metric", ["latency_p95", "latency_mean", "cold_start", "latency_p50"])
def test_a_significant_slow_down_with_a_caveat_looks_slower_whatever_its_metric(
    metric: str,
) -> None:
    ratios = [4.3, 4.31, 4.29, 4.3, 4.305]  # few rounds for as many tests
    sides = side("base", metric, [0.01] * 5), side("head", metric, [0.01 * r for r in ratios])
    compared = compare_case(case(), *sides, POLICY, paired=True)
    (row,) = adjust(compared, POLICY, 50.0)
    assert row.findings[-1].code == "looks-regressed"
    assert decide((row,), (), POLICY).looks_slower
