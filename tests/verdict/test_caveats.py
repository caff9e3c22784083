"""What keeps a significant change from counting: few rounds, two speeds, one session."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfci.finding import finding
from perfci.model.report import Comparison
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.caveats import (
    caveat_of_rounds,
    caveat_of_workers,
    chance_of_separation,
    rounds_to_believe,
)
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust, suspects
from perfci.verdict.stopping import is_out_of_reach, undecided_metrics
from tests.verdict.workers import case, side

POLICY = Policy()
LUCK = (1.001, 0.999, 1.002, 0.998, 1.0, 1.001, 0.999, 1.0015, 0.9985, 1.0)


def paired(ratios: list[float], metric: str = "latency_p50") -> tuple[Comparison, ...]:
    """Rounds whose sides are ``ratios`` apart, and a little luck."""
    head = [ratio * luck for ratio, luck in zip(ratios, LUCK, strict=False)]
    sides = side("base", metric, [1.0] * len(ratios)), side("head", metric, head)
    return compare_case(case(), *sides, POLICY, paired=True)


def apart(
    base: list[float],
    head: list[float],
    sessions: tuple[int, ...] = (),
    metric: str = "latency_p50",
) -> tuple[Comparison, ...]:
    sides = side("base", metric, base), side("head", metric, head)
    return compare_case(case(), *sides, POLICY, paired=False, base_sessions=sessions)


def judged(rows: tuple[Comparison, ...], family: int = 1) -> Comparison:
    return adjust(rows * family, POLICY)[0]


def test_the_luck_of_states_is_at_worst_one_in_four_for_each_pair() -> None:
    rng = np.random.default_rng(1)
    slow = rng.random((100_000, 2, 3)) < 0.5
    seen = np.mean(slow[:, 1].all(axis=1) & ~slow[:, 0].any(axis=1))
    assert chance_of_separation(3, 3) == pytest.approx(4.0**-3)
    assert seen == pytest.approx(4.0**-3, rel=0.1)
    assert chance_of_separation(15, 5) == pytest.approx(0.25**5 * 0.75**15)


def test_more_comparisons_ask_for_more_rounds() -> None:
    assert [rounds_to_believe(family, 0.01) for family in (1, 4, 20, 100)] == [5, 6, 7, 8]


def test_a_change_of_few_rounds_is_not_yet_believed_and_more_rounds_are_asked_for() -> None:
    rows = paired([1.10] * 5)
    assert judged(rows).status == "regressed"
    row = judged(rows, 20)
    assert (row.status, row.p_adjusted < 0.01) == ("inconclusive", True)
    assert row.warnings[-1].startswith(
        "looks regressed: 5 rounds cannot rule out between-process variance; 7"
    )
    assert undecided_metrics(rows, POLICY, 20) == ("latency_p50",)
    enough = paired([1.10] * 7)
    assert judged(enough, 20).status == "regressed"
    assert undecided_metrics(enough, POLICY, 20) == ()


def test_a_change_of_few_rounds_is_not_believed_however_large_it_is() -> None:
    """Ancestors of two modes 60 % apart failed 8.1 % of identical reports."""
    rows = paired([1.6] * 5)
    row = judged(rows, 20)
    assert (row.status, row.p_adjusted < 0.01) == ("inconclusive", True)
    assert undecided_metrics(rows, POLICY, 20) == ("latency_p50",)
    enough = paired([1.6] * 7)
    assert judged(enough, 20).status == "regressed"
    assert undecided_metrics(enough, POLICY, 20) == ()


def test_rounds_of_two_speeds_are_doubted_and_the_two_are_named() -> None:
    row = judged(paired([1.10] * 8 + [1.0]))
    assert (row.status, row.p_adjusted < 0.01) == ("inconclusive", True)
    assert "rounds fall into two groups, -0.1 % and +10.0 % (1 and 8 of them)" in row.warnings[-1]
    assert row.base.workers == 9


def test_a_disturbed_round_stays_and_casts_no_doubt() -> None:
    row = judged(paired([1.10] * 8 + [1.45]))
    assert (row.status, row.caveat) == ("regressed", None)
    assert row.ratio == pytest.approx(1.10 ** (8 / 9) * 1.45 ** (1 / 9), rel=1e-3)


def test_a_change_that_most_rounds_do_not_show_is_doubted() -> None:
    few = caveat_of_rounds([1.0] * 5, [1.0, 1.0, 1.0, 1.3, 1.3], 1.11)
    assert few == finding("few-rounds-changed")
    few = caveat_of_workers([1.0] * 5, [1.0, 1.0, 1.0, 1.3, 1.3], 1.11)
    assert few == finding("few-workers-changed")


def test_two_speeds_of_one_side_only_are_no_doubt_for_what_lies_beyond_both() -> None:
    base = [1.0, 1.1, 1.001, 1.101, 0.999]
    head = [1.5 * value for value in reversed(base)]
    assert caveat_of_workers(base, head, 1.5) is None
    groups = caveat_of_workers([1.0] * 4 + [1.1], [1.1] * 5, 1.08)
    assert groups is not None
    assert (groups.code, groups.arguments["high_count"]) == ("worker-groups", 6)


def test_a_baseline_of_one_session_makes_a_suspicion_and_no_regression() -> None:
    base, head = list(LUCK[:6]), [1.12 * v for v in LUCK[:6]]
    row = judged(apart(base, head))
    assert (row.status, row.base_sessions) == ("inconclusive", 1)
    assert "one session" in row.warnings[-1]
    assert suspects([row], POLICY) == (row.case,)
    assert judged(apart(base, [1.6 * v for v in base])).status == "inconclusive"


def test_what_head_alone_leaves_undecided_is_suspect() -> None:
    wide = [0.9, 1.0, 1.1, 0.95, 1.05, 1.0]
    assert suspects([judged(apart(wide, [1.01 * v for v in wide]))], POLICY) == (
        "encoder[batch=1]",
    )


@pytest.mark.parametrize(
    ("ratios", "asks"),
    [
        ([1.3] * 5, True),
        ([1.05, 1.35, 1.2, 1.1, 1.3], True),  # worse, and five rounds prove too little
        ([1.3, 0.8, 1.2, 0.9, 1.3], False),
        ([0.7] * 5, False),
    ],
)
def test_cold_start_asks_for_rounds_only_while_it_looks_worse_by_its_threshold(
    ratios: list[float], asks: bool
) -> None:
    wanting = undecided_metrics(paired(ratios, "cold_start"), POLICY, 80)
    assert wanting == (("cold_start",) if asks else ())


@pytest.mark.parametrize(
    ("change", "rounds", "asks"), [(1.5, 6, True), (1.5, 9, False), (1.0, 6, False)]
)
def test_a_tail_gets_the_rounds_that_it_takes_to_believe_it(
    change: float, rounds: int, asks: bool
) -> None:
    ratios = [change * ratio for ratio in (1.0, 1.01, 0.99, 1.005, 0.995, 1.0, 1.01, 0.99, 1.0)]
    rows = paired(ratios[:rounds], "latency_p95")
    assert undecided_metrics(rows, POLICY, 20) == (("latency_p95",) if asks else ())


@pytest.mark.parametrize(("median", "asks"), [(1.0, True), (1.3, False)])
def test_a_tail_asks_for_no_rounds_where_the_median_is_worse(median: float, asks: bool) -> None:
    spread = (1.0, 1.002, 0.998, 1.001, 0.999, 1.0, 1.001, 0.999)
    rows = [
        *paired([median * ratio for ratio in spread]),
        *paired([1.2, 0.9, 1.5, 1.1, 1.3, 1.0, 1.4, 1.2], "latency_p99"),
    ]
    assert undecided_metrics(rows, POLICY, 20) == (("latency_p99",) if asks else ())


def test_a_metric_that_gets_no_more_rounds_does_not_ask_for_any() -> None:
    compiling, latency = paired([1.3] * 3, "compile_time"), paired([1.0] * 6)
    assert undecided_metrics((*compiling, *latency), POLICY, 20) == ()


def test_what_compile_time_needs_is_said_with_the_setting_that_gives_it() -> None:
    (noisy,) = paired([1.3, 0.9, 1.2, 1.0, 1.1], "compile_time")
    assert "rounds (`compile_rounds`) would detect 10 %" in judged([noisy]).warnings[-1]
    (few,) = paired([1.0, 1.01, 0.99, 1.02, 0.98], "latency_p50")
    assert "compile_rounds" not in " ".join(judged([few]).warnings)


def test_rounds_alike_to_the_last_digit_ask_for_no_more() -> None:
    same = side("base", "latency_p50", [1.0] * 10), side("head", "latency_p50", [1.1] * 10)
    rows = compare_case(case(), *same, POLICY, paired=True)
    assert rows[0].p is None
    assert undecided_metrics(rows, POLICY, 20) == ()


def test_the_detectable_change_of_sessions_is_that_of_one_among_many() -> None:
    base = [1.0, 1.01, 0.99, 1.02, 1.03, 1.01, 0.98, 0.99, 0.97]
    rows = apart(base, [1.0, 1.01, 0.99, 1.0, 1.0], (3, 3, 3))
    alone, among = judged(rows), judged(rows, 20)
    assert rows[0].df == 2
    assert among.detectable > 3 * alone.detectable


def test_a_new_slow_mode_of_head_keeps_it_from_being_unchanged() -> None:
    quiet = [1.0, 1.002, 0.998, 1.001, 0.999, 1.0, 1.003, 0.997]
    slow_at_times = paired([*quiet, 1.3, 1.31])
    row = judged(slow_at_times)
    assert (row.base.workers, row.outliers, row.status) == (10, (), "inconclusive")
    assert row.ratio == pytest.approx(1.055, rel=1e-2)
    assert undecided_metrics(slow_at_times, POLICY, 1) == ("latency_p50",)


def test_one_session_of_a_baseline_never_shows_that_nothing_changed() -> None:
    steady = [1.0, 1.001, 0.999, 1.0005, 0.9995]
    row = judged(apart(steady, steady))
    assert row.status == "inconclusive"
    assert "one session" in row.warnings[-1]
    assert decide([row], [], POLICY).status == "inconclusive"
    worse = judged(apart(steady, [1.02 * v for v in steady]))
    assert worse.status == "inconclusive"
    assert any("below the threshold" in warning for warning in worse.warnings)
    several = [luck * v for luck in (1.0, 1.0004, 0.9996, 1.0002, 0.9998) for v in steady]
    assert judged(apart(several, steady, sessions=(5,) * 5)).status == "unchanged"


def test_cold_start_that_may_be_slower_is_a_suspect_whatever_its_p() -> None:
    base = [1.0, 1.02, 0.98, 1.04, 1.06, 1.02]
    slow = judged(apart(base, [1.2 * v for v in base], (3, 3), "cold_start"))
    assert (slow.status, suspects([slow], POLICY)) == ("inconclusive", (slow.case,))
    assert slow.p is not None
    assert slow.p > POLICY.alpha
    near = judged(apart(base, [1.05 * v for v in base], (3, 3), "cold_start"))
    assert suspects([near], POLICY) == ()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("change", "rounds", "stops"),
    [(1.05, 8, True), (1.053, 8, True), (1.05, 7, False), (1.065, 8, False), (1.0, 8, False)],
)
def test_a_change_at_the_threshold_gets_no_rounds_after_eight(
    change: float, rounds: int, stops: bool, sign: int
) -> None:
    spread = [1 + sign * step for step in (0.01, -0.01, 0.012, -0.012, 0.008, -0.008, 0.01, -0.01)]
    (row,) = paired([change * ratio for ratio in spread[:rounds]])
    assert is_out_of_reach(row, POLICY, 4, 12) is stops
    if stops:
        (judged,) = adjust((replace(row, ratio=1.0499),), POLICY)
        assert judged.findings[-1].code == "at-threshold"
