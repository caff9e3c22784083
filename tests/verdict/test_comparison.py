"""From workers to judged comparisons."""

from __future__ import annotations

import math
import mmap
from dataclasses import replace

import pytest

from perfci.model.case import Direction, Gate, Kind, Metric
from perfci.model.report import Comparison
from perfci.model.words import words
from perfci.model.worker import THROTTLED
from perfci.stats.t_tests import t_quantile
from perfci.verdict.case_comparisons import compare_case, number_rows
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy, Worsening, standard_error, worsening
from perfci.verdict.row_status import adjust
from perfci.verdict.stopping import is_decided, wants_rounds
from tests.verdict.workers import OWN, STEADY, both, case, held_to, side, worker

POLICY = Policy()


def judged(metric: str, ratio: float, policy: Policy = POLICY, **noise: float) -> Comparison:
    (row,) = adjust(
        compare_case(case(), *both(metric, ratio, **noise), policy, paired=True), policy
    )
    return row


def exact(metric: str, base: list[float], head: list[float], **changes: object) -> Comparison:
    sides = side("base", metric, base), side("head", metric, head)
    (row,) = adjust(compare_case(case(**changes), *sides, POLICY, paired=True), POLICY)
    return row


def test_a_slowdown_beyond_the_threshold_is_regressed() -> None:
    row = judged("latency_p50", 1.08)
    assert (row.status, row.method, row.gate) == ("regressed", "paired_t", "fail")
    assert row.ratio == pytest.approx(1.08, rel=1e-3)
    assert row.head.center / row.base.center == pytest.approx(row.ratio)
    assert row.p_adjusted < 0.01
    assert row.welch_p is not None
    assert (row.base.workers, row.base.samples) == (6, 600)


def test_a_speedup_beyond_the_threshold_is_improved() -> None:
    assert judged("latency_p50", 1 / 1.08).status == "improved"


def test_the_same_speed_is_shown_to_be_unchanged() -> None:
    assert judged("latency_p50", 1.0).status == "unchanged"


def test_a_significant_change_below_the_threshold_is_a_warning_only() -> None:
    row = judged("latency_p50", 1.03)
    assert row.p_adjusted < 0.01
    assert row.status == "unchanged"
    assert row.warnings == ("significant, but below the threshold of 5 %",)


def test_noise_is_inconclusive_and_says_what_it_would_take() -> None:
    row = judged("latency_p50", 1.03, noise=60.0)
    assert row.status == "inconclusive"
    assert row.detectable > 0.05
    assert "would have been detected" in row.warnings[-1]
    assert "rounds would detect 5 %" in row.warnings[-1]


def test_cohens_d_decides_for_unpaired_sides_and_not_for_pairs() -> None:
    policy = replace(POLICY, cohens_d=100.0)
    paired = judged("latency_p50", 1.051, policy, noise=3.0)
    assert paired.ratio_lo < 1.05 < paired.ratio
    assert paired.status == "regressed"
    (unpaired,) = adjust([replace(paired, method="welch_t", base_sessions=3)], policy)
    assert unpaired.status == "inconclusive"
    assert unpaired.warnings[-1] == "significant, but Cohen's d is below 100"


@pytest.mark.parametrize(("ratio", "status"), [(1.08, "regressed"), (1 / 1.08, "improved")])
def test_a_change_of_pairs_may_be_small_beside_drift(ratio: float, status: str) -> None:
    drift = (1.0, 2.0, 1.2, 3.0, 0.8, 1.9, 1.4, 2.6)
    own = (0.001, -0.002, 0.002, 0.0, -0.001, 0.001, 0.0, 0.001)
    base = side("base", "latency_p50", drift)
    head = side(
        "head", "latency_p50", [d * ratio * (1.0 + o) for d, o in zip(drift, own, strict=True)]
    )
    (row,) = adjust(compare_case(case(), base, head, POLICY, paired=True), POLICY)
    assert abs(row.cohens_d) < 0.2
    assert row.status == status


def test_more_is_better_for_throughput() -> None:
    assert judged("throughput", 1 / 1.08).status == "regressed"
    assert judged("throughput", 1.08).status == "improved"
    assert judged("throughput", 1.0).status == "unchanged"


def test_the_threshold_is_met_by_the_change_not_by_its_difference() -> None:
    # 0.96 is a change of 4 % and of 1/0.96: 4.2 %; both ends of the margin are one threshold away
    assert judged("throughput", 1 / 1.06).status == "regressed"
    assert judged("throughput", 1 / 1.04).status == "unchanged"


def test_the_benchmarks_own_threshold_wins_over_configuration() -> None:
    configured = Policy(metrics=held_to("latency_p50", 0.5, "warn"))
    sides = both("latency_p50", 1.08)
    row, own = (
        adjust(compare_case(one, *sides, configured, paired=True), configured)[0]
        for one in (case(), case(thresholds={"latency_p50": 0.01}))
    )
    assert (row.threshold, row.gate, row.status) == (0.5, "warn", "unchanged")
    assert (own.threshold, own.gate, own.status) == (0.01, "warn", "regressed")


def test_pairs_are_matched_by_round_and_lonely_rounds_are_left_out_with_a_warning() -> None:
    base, head = both("latency_p50", 1.08)
    whole = compare_case(case(), base[:-1], head[:-1], POLICY, paired=True)[0]
    shuffled = (base[5], *reversed(base[:-1]))
    row = compare_case(case(), shuffled, head[:-1], POLICY, paired=True)[0]
    assert row.p == whole.p
    assert row.base.workers == 5
    assert "round 6" in row.warnings[0]


def test_a_row_keeps_the_values_of_its_pairs_however_far_out_they_are() -> None:
    base, head = both("latency_p50", 1.08)
    quantiles = tuple(0.01 * step for step in range(1, 10))
    slow = replace(head[2], values={"latency_p50": 0.02})
    rounds = [replace(one, quantiles=quantiles) for one in (*head[:2], slow, *head[3:])]
    disturbed = replace(base[0], bursts_disturbed=1, disturbance="core taken")
    row = compare_case(case(), (disturbed, *base[1:]), rounds, POLICY, paired=True)[0]
    assert (row.outliers, row.base.workers, row.disturbance) == ((), 6, "core taken")
    assert row.base.values == tuple(0.01 * luck for luck in STEADY)
    assert row.head.values[2] == 0.02
    assert (row.base.quantiles, row.head.quantiles) == ((), pytest.approx(quantiles))


@pytest.mark.parametrize(
    ("metric", "disturbance", "count", "status"),
    [
        ("latency_p50", THROTTLED, 2, "inconclusive"),
        ("latency_p50", THROTTLED, 1, "regressed"),
        ("latency_p50", "core taken", 6, "regressed"),
        ("command_peak_memory", THROTTLED, 6, "regressed"),
    ],
)
def test_a_time_among_workers_that_a_quota_stopped_is_undecided(
    metric: str, disturbance: str, count: int, status: str
) -> None:
    base, head = both(metric, 1.3)
    stopped = [replace(o, bursts_disturbed=9, disturbance=disturbance) for o in head[:count]]
    rows = compare_case(case(), base, (*stopped, *head[count:]), POLICY, paired=True)
    row = adjust(rows, POLICY)[0]
    assert row.status == status
    reason = f"a processor quota stopped most bursts of {count} of 12 workers"
    assert any(reason in warning for warning in row.warnings) == (status == "inconclusive")


def test_a_row_of_latency_has_the_median_process_s_first_calls() -> None:
    base, head = both("latency_p50", 1.08)
    calls = [(3.0 * luck, 0.02 * luck, 0.01) for luck in STEADY]
    warmed = [replace(one, first_calls=of) for one, of in zip(head, calls, strict=True)]
    shorter = [*warmed[:-1], replace(warmed[-1], first_calls=calls[-1][:2])]
    row = compare_case(case(), base, shorter, POLICY, paired=True)[0]
    assert row.base.first_calls == ()
    assert row.head.first_calls == pytest.approx((3.0, 0.02), rel=0.05)


def test_of_many_rounds_the_first_are_kept_and_of_no_number_none() -> None:
    sides = (side(name, "latency_p50", [0.01 + 1e-5 * n for n in range(300)]) for name in "ab")
    row = compare_case(case(), *sides, POLICY, paired=True)[0]
    assert (len(row.base.values), row.base.workers) == (200, 300)
    row = exact("latency_p50", [1.0, 2.0, math.nan, 1.0, 2.0], [1.0, 2.0, 1.0, 1.0, 2.0])
    assert row.base is None or row.base.values == ()


@pytest.mark.parametrize("count", [1, 0])
def test_one_round_is_no_evidence(count: int) -> None:
    base, head = both("latency_p50", 2.0)
    rows = adjust(compare_case(case(), base[:count], head[:count], POLICY, paired=True), POLICY)
    assert [(row.status, row.p) for row in rows] == [("inconclusive", None)] * count


def test_a_change_without_any_spread_is_not_called_significant() -> None:
    row = exact("latency_p50", [0.1] * 5, [0.2] * 5)
    assert (row.status, row.p, row.p_adjusted) == ("inconclusive", None, None)
    assert "do not vary" in row.warnings[0]


def test_memory_without_any_spread_is_known_to_a_page() -> None:
    pages = float(mmap.PAGESIZE)
    more = exact("peak_host_memory", [2000 * pages] * 5, [4000 * pages] * 5)
    within = exact("peak_host_memory", [pages] * 5, [2 * pages] * 5)
    assert (more.status, within.status) == ("regressed", "inconclusive")


def test_values_that_agree_to_the_last_digit_are_unchanged() -> None:
    row = exact("latency_p50", [0.1] * 5, [0.1] * 5)
    assert (row.status, row.p) == ("unchanged", None)


def test_nan_is_no_evidence() -> None:
    row = exact("latency_p50", [1.0, 1.1, math.nan, 1.0], [2.0, 2.1, 2.2, 2.1])
    assert (row.status, row.p, row.base.center) == ("inconclusive", None, None)
    assert exact("graph_breaks", [0.0], [math.nan]).status == "inconclusive"


def test_one_new_graph_break_is_one_new_graph_break() -> None:
    row = exact("graph_breaks", [0.0, 0.0], [1.0, 1.0])
    assert (row.status, row.difference, row.ratio, row.p) == ("regressed", 1.0, None, None)
    assert exact("graph_breaks", [2.0], [1.0]).status == "improved"
    assert exact("graph_breaks", [2.0], [2.0]).status == "unchanged"


def test_exact_memory_is_compared_by_its_share() -> None:
    assert exact("peak_device_memory", [100.0], [110.0]).status == "regressed"
    assert exact("peak_device_memory", [100.0], [109.0]).status == "unchanged"
    assert exact("peak_device_memory", [0.0], [0.0]).status == "unchanged"
    from_nothing = exact("peak_device_memory", [0.0], [5.0])
    assert (from_nothing.status, from_nothing.ratio) == ("regressed", None)


def test_a_leak_is_compared_by_its_amount() -> None:
    assert exact("memory_growth", [0.0] * 5, [15.0] * 5).status == "unchanged"
    assert exact("memory_growth", [-3.0] * 5, [393.0] * 5).status == "regressed"


def test_accuracy_below_the_floor_counts_as_the_floor() -> None:
    assert exact("accuracy_loss", [0.01], [0.9]).status == "unchanged"
    assert exact("accuracy_loss", [0.01], [2.5]).status == "regressed"


def test_absolute_metrics_are_tested_by_their_difference() -> None:
    mebibyte = float(1 << 20)
    base = [100.0 * mebibyte + 1e4 * luck for luck in STEADY]
    head = [value + 12 * mebibyte + 1e6 * own for value, own in zip(base, OWN, strict=True)]
    row = exact("host_memory_over_setup", base, head)
    assert (row.status, row.ratio) == ("regressed", None)
    assert row.difference == pytest.approx(12 * mebibyte, rel=0.01)
    assert row.difference_lo < row.difference < row.difference_hi
    assert exact("host_memory_over_setup", base, base[1:] + base[:1]).status == "unchanged"


def test_only_the_metrics_a_benchmark_asks_for_are_reported_and_its_own() -> None:
    own = Metric("tokens", "count", "exact", 0.1, "fail")
    values = {"latency_p50": 1.0, "latency_mean": 1.0, "tokens": 5.0}
    base, head = (
        [worker(name, n, values, extra_metrics=(own,)) for n in (1, 2)] for name in ("base", "head")
    )
    limited = case(metrics=("latency_p50",))
    rows = compare_case(limited, base, head, POLICY, paired=True)
    assert [row.metric for row in rows] == ["latency_p50", "tokens"]


@pytest.mark.parametrize("gate", ["fail", "warn", "info"])
@pytest.mark.parametrize("kind", ["exact", "per_worker"])
@pytest.mark.parametrize("lacking", [("head",), ("base",), ("base", "head")])
def test_a_metric_of_the_benchmarks_own_without_a_value_keeps_its_row(
    gate: Gate, kind: Kind, lacking: tuple[str, ...]
) -> None:
    own = Metric("loss", "", kind, 0.1, gate)
    base, head = (
        [
            worker(name, n, {}, missing={"loss": "the benchmark gave nan"}, extra_metrics=(own,))
            if name in lacking
            else worker(name, n, {"loss": 0.5}, extra_metrics=(own,))
            for n in range(1, 7)
        ]
        for name in ("base", "head")
    )
    (row,) = compare_case(case(), base, head, POLICY, paired=True)
    assert (row.metric, row.status, row.gate) == ("loss", "inconclusive", gate)
    assert "the benchmark gave nan" in words(row.findings[-1])
    assert (row.base is None, row.head is None) == ("base" in lacking, "head" in lacking)


def test_an_own_metric_that_some_of_heads_workers_lack_is_not_decided() -> None:
    own = Metric("loss", "", "per_worker", 0.1, "fail")
    base = [worker("base", n, {"loss": 0.5 + n / 1e3}, extra_metrics=(own,)) for n in range(1, 7)]
    head = [
        worker("head", n, {"loss": 0.5}, extra_metrics=(own,))
        if n % 2
        else worker("head", n, {}, missing={"loss": "the benchmark gave nan"}, extra_metrics=(own,))
        for n in range(1, 7)
    ]
    (row,) = compare_case(case(), base, head, POLICY, paired=True)
    assert row.status == "inconclusive"
    assert row.warnings == ("3 of 6 workers of head have no value: the benchmark gave nan",)
    assert decide((row,), (), POLICY).status != "pass"


@pytest.mark.parametrize(
    ("base", "head", "direction", "status"),
    [
        (0.0, 5.0, "lower", "regressed"),
        (0.0, 0.0, "lower", "unchanged"),
        (10.0, 0.0, "higher", "regressed"),
        (5.0, 10.0, "lower", "regressed"),
        (10.0, 5.0, "lower", "improved"),
    ],
)
@pytest.mark.parametrize("rounds", [5, 2])
def test_an_own_metric_that_never_varies_is_compared_exactly_from_five_rounds_on(
    base: float, head: float, direction: Direction, status: str, rounds: int
) -> None:
    own = Metric("errors", "count", "per_worker", 0.1, "fail", direction)
    sides = (
        [worker(name, n, {"errors": value}, extra_metrics=(own,)) for n in range(rounds)]
        for name, value in (("base", base), ("head", head))
    )
    (row,) = adjust(compare_case(case(), *sides, POLICY, paired=True), POLICY)
    assert row.status == (status if rounds == 5 else "inconclusive")


def test_a_gating_metric_that_head_no_longer_gives_is_told_of() -> None:
    base = [worker("base", 1, {"graph_breaks": 0.0, "device_time_p50": 1.0})]
    head = [worker("head", 1, {}, missing={"graph_breaks": "no graph was compiled"})]
    (row,) = compare_case(case(), base, head, POLICY, paired=True)
    assert (row.metric, row.status, row.method) == ("graph_breaks", "inconclusive", "none")
    assert row.warnings == ("only base has a value: no graph was compiled",)


def test_a_stored_baseline_is_compared_with_welch_and_its_sessions_widen_the_interval() -> None:
    head = side("head", "latency_p50", [1.081, 1.079, 1.080, 1.082, 1.078])
    base = side("base", "latency_p50", [1.0, 1.01, 0.99, 1.05, 1.06, 1.04])
    one, two = (
        compare_case(case(), base, head, POLICY, paired=False, base_sessions=counts)[0]
        for counts in ((), (3, 3))
    )
    assert one.method == two.method == "welch_t"
    assert any("one session" in warning for warning in one.warnings)
    assert two.ratio_hi - two.ratio_lo > 3 * (one.ratio_hi - one.ratio_lo)


def test_sessions_that_do_not_add_up_are_refused() -> None:
    base, head = both("latency_p50", 1.0)
    with pytest.raises(ValueError, match="sessions of 4 workers"):
        compare_case(case(), base, head, POLICY, paired=False, base_sessions=(2, 2))


def test_holm_corrects_gating_comparisons_for_gating_ones_alone() -> None:
    fails = compare_case(case(), *both("latency_p50", 1.08), POLICY, paired=True)
    warns = compare_case(case(), *both("device_time_p50", 1.08), POLICY, paired=True)
    assert fails[0].p == pytest.approx(warns[0].p)
    rows = adjust([*fails, *warns, *warns], POLICY)
    assert rows[0].p_adjusted == pytest.approx(fails[0].p)
    assert rows[1].p_adjusted == pytest.approx(3 * warns[0].p)
    many = adjust(fails * 20, POLICY)
    assert many[0].p_adjusted == pytest.approx(20 * fails[0].p)
    assert many[0].detectable > rows[0].detectable
    assert fails[0].detectable is None  # it is of a family, which isn't known yet


def test_adjusting_twice_is_adjusting_once() -> None:
    rows = [
        row
        for ratio, noise in ((1.0, 1.0), (1.08, 1.0), (1.03, 60.0))
        for row in compare_case(
            case(), *both("latency_p50", ratio, noise=noise), POLICY, paired=True
        )
    ]
    once = adjust(rows, POLICY)
    assert {row.status for row in once} == {"unchanged", "regressed", "inconclusive"}
    assert adjust(once, POLICY) == once


def test_numbers_of_one_side_stand_alone() -> None:
    base, _ = both("latency_p50", 1.0)
    (row,) = number_rows(case(), base, POLICY)
    assert (row.status, row.method, row.base) == ("new", "none", None)
    assert row.head.center == pytest.approx(0.01, rel=0.01)


def with_interval(lo: float, hi: float) -> Worsening:
    ends = math.log(lo), math.log(hi)
    return Worsening(sum(ends) / 2.0, *ends, math.log1p(0.05))


@pytest.mark.parametrize(
    ("lo", "hi", "excluded", "decided"),
    [
        (0.99, 1.01, True, True),
        (1.06, 1.20, True, True),
        (0.80, 0.90, True, True),
        (0.99, 1.06, False, False),
        (0.94, 1.01, True, False),
        (0.50, 2.00, False, False),
        (1.051, 1.052, True, True),
        (0.951, 0.953, True, False),
    ],
)
def test_measuring_goes_on_while_the_threshold_is_inside_the_interval(
    lo: float, hi: float, excluded: bool, decided: bool
) -> None:
    rule = with_interval(lo, hi), 1e-4, 0.01
    assert is_decided(*rule) is excluded
    assert is_decided(*rule, two_sided=True) is decided


def test_a_clear_but_noisy_slow_down_is_measured_until_the_report_can_call_it_significant() -> None:
    slower = with_interval(1.10, 1.20)
    assert is_decided(slower, 1e-4, 0.01 / 20)
    assert not is_decided(slower, 1e-4, 1e-5)
    assert not is_decided(slower, None, 0.01)


def test_the_interval_that_is_printed_is_the_one_that_stops() -> None:
    looked, fixed = (
        compare_case(case(), *both("latency_p50", 1.03, noise=10.0), policy, paired=True)[0]
        for policy in (POLICY, replace(POLICY, looks=(6, 6)))
    )
    assert (looked.ratio, looked.se, looked.p) == (fixed.ratio, fixed.se, fixed.p)
    assert fixed.confidence == 0.95
    assert looked.confidence == pytest.approx(0.9886, abs=1e-4)
    half = t_quantile(0.5 + looked.confidence / 2.0, 5) * looked.se
    assert math.log(looked.ratio_hi) == pytest.approx(math.log(looked.ratio) + half)
    assert fixed.ratio_hi < 1.05 < looked.ratio_hi
    assert wants_rounds(looked, POLICY, 1)
    assert not wants_rounds(fixed, POLICY, 1)


def test_a_metric_of_a_fixed_number_of_rounds_has_the_plain_interval() -> None:
    (row,) = compare_case(case(), *both("compile_time", 1.02), POLICY, paired=True)
    assert row.confidence == 0.95


@pytest.mark.parametrize("metric", ["latency_p50", "host_memory_over_setup", "command_cpu_time"])
def test_a_comparison_keeps_the_standard_error_that_its_interval_was_made_with(metric: str) -> None:
    (row,) = compare_case(case(), *both(metric, 1.1, scale=1e6), POLICY, paired=True)
    _, lo, hi, _ = worsening(row)
    assert row.se is not None
    assert row.se * t_quantile(0.5 + row.confidence / 2, row.df) == pytest.approx(
        (hi - lo) / 2.0, rel=1e-9
    )
    assert standard_error(row) == pytest.approx(row.se, rel=1e-9)


def test_a_change_wants_rounds_until_its_p_counts_among_all_tests() -> None:
    base = side("base", "latency_p50", [0.01] * 12)
    head = side("head", "latency_p50", [0.012 * (1.0 + own) for own in (*OWN, *OWN)])
    (row,) = compare_case(case(), base, head, POLICY, paired=True)
    assert worsening(row).is_beyond
    row = replace(row, p=0.005)
    assert not wants_rounds(row, POLICY, 1)
    assert wants_rounds(row, POLICY, 20)
