"""Exact metrics: compared without a test where the workers of a side agree, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.config.loading import parse_config
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison
from perfci.verdict.case_comparisons import compare_case, number_rows
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from tests.verdict.workers import case, side, worker

POLICY = Policy()


def compared(metric: str, base: list[float], head: list[float]) -> Comparison:
    sides = side("base", metric, base), side("head", metric, head)
    (row,) = adjust(compare_case(case(), *sides, POLICY, paired=True), POLICY)
    return row


def test_a_growth_whose_workers_disagree_is_neither_exact_nor_improved() -> None:
    row = compared("memory_growth", [16.0, 42.0, 54.0], [0.0, 0.0, 0.0])
    assert (row.method, row.status) == ("paired_t", "inconclusive")
    assert (row.difference_lo, row.difference_hi) == (None, None)
    more = compared("memory_growth", [2.0, 42.0, 54.0, 0.0, 48.0], [0.0] * 5)
    assert (more.method, more.status) == ("paired_t", "inconclusive")
    assert more.difference_lo < more.difference < more.difference_hi


def test_a_leak_whose_workers_disagree_is_tested() -> None:
    leak = [390.0, 402.0, 398.0, 405.0, 395.0]
    row = compared("memory_growth", [0.0, 2.0, 0.0, 0.0, 1.0], leak)
    assert (row.method, row.status) == ("paired_t", "regressed")
    assert row.p_adjusted < 0.01
    assert row.difference_lo < 397.0 < row.difference_hi


def test_workers_agree_within_a_tenth_of_the_threshold() -> None:
    row = compared("memory_growth", [0.0, 0.1, 1.5, 0.0, 1.0], [393.0, 393.5, 394.0] + [393.2] * 2)
    assert (row.method, row.status, row.p) == ("exact", "regressed", None)
    device = compared("peak_device_memory", [1000.0, 1001.0], [1200.0, 1201.0])
    assert (device.method, device.status) == ("exact", "regressed")
    assert compared("peak_device_memory", [1000.0, 1050.0], [1200.0] * 2).method == "paired_t"
    assert compared("accuracy_loss", [0.1, 0.9], [0.5, 0.2]).method == "exact"
    assert compared("accuracy_loss", [1.0, 1.3], [2.0, 2.0]).method == "paired_t"


@pytest.mark.parametrize("metric", ["graph_breaks", "recompiles"])
def test_a_count_that_some_processes_have_is_no_pass(metric: str) -> None:
    row = compared(metric, [0.0] * 5, [0.0, 1.0, 0.0, 1.0, 0.0])
    assert (row.method, row.status) == ("paired_t", "inconclusive")
    assert row.difference == pytest.approx(0.4)
    assert decide([row], (), POLICY).status == "inconclusive"
    every = compared(metric, [0.0] * 5, [1.0] * 5)
    assert (every.method, every.status) == ("exact", "regressed")


def test_counts_that_vary_alike_on_both_sides_are_unchanged() -> None:
    row = compared("recompiles", [0.0, 1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0, 0.0])
    assert (row.method, row.status) == ("paired_t", "unchanged")


def test_numbers_of_one_side_are_exact_only_where_its_workers_agree() -> None:
    def head(values: list[float]) -> tuple[float, float, float]:
        (row,) = number_rows(case(), side("head", "recompiles", values), POLICY)
        return row.head.lo, row.head.center, row.head.hi

    assert head([1.0] * 5) == (1.0, 1.0, 1.0)
    lo, center, hi = head([0.0, 1.0, 0.0, 1.0, 1.0])
    assert center == pytest.approx(0.6)
    assert lo < 0.0 < 1.0 < hi


def test_the_floor_holds_where_accuracy_is_tested_too() -> None:
    row = compared("accuracy_loss", [0.1, 0.4, 1.2, 0.2, 0.3], [0.9, 0.1, 0.5, 1.3, 0.6])
    assert (row.method, row.status) == ("paired_t", "unchanged")


def test_memory_over_setup_fails_by_an_amount_and_by_a_share_of_base() -> None:
    def row(base: float, head: float) -> Comparison:
        noise = (0.0, 0.05, -0.04, 0.02, -0.03)
        return compared(
            "host_memory_over_setup",
            [(base + each) * (1 << 20) for each in noise],
            [(head - each) * (1 << 20) for each in noise],
        )

    doubled = row(8.0, 16.0)
    assert (doubled.status, doubled.gate, doubled.threshold) == ("regressed", "fail", 4 << 20)
    assert decide([doubled], (), POLICY).status == "fail"
    assert row(8.0, 11.0).status == "unchanged"
    large = row(1000.0, 1050.0)
    assert large.threshold == pytest.approx(100 << 20, rel=1e-3)
    assert large.status == "unchanged"
    assert row(1000.0, 1150.0).status == "regressed"


def memory_rows(before: float, after: float, peak: float, policy: Policy) -> list[Comparison]:
    """Return the rows of working memory and of the peak that it is part of; sizes in MiB."""

    def workers(side: str, working: float, whole: float) -> list[WorkerOutput]:
        return [
            worker(
                side,
                number,
                {
                    "peak_host_memory": (whole + luck) * (1 << 20),
                    "host_memory_over_setup": (working + luck) * (1 << 20),
                },
            )
            for number, luck in enumerate((0.0, 0.05, -0.04, 0.02, -0.03), start=1)
        ]

    sides = workers("base", before, peak), workers("head", after, peak + after - before)
    return list(adjust(compare_case(case(), *sides, policy, paired=True), policy))


def test_memory_over_setup_has_a_floor_that_grows_with_the_whole_peak() -> None:
    """Seen: +4.68 MiB of 260 failed a head that was eight times faster."""
    whole, working = memory_rows(3.0, 7.68, 260.0, POLICY)
    assert working.threshold == pytest.approx(0.02 * 260 * (1 << 20), rel=1e-3)
    assert (whole.status, working.status) == ("unchanged", "unchanged")
    assert memory_rows(3.0, 12.0, 260.0, POLICY)[1].status == "regressed"
    assert memory_rows(3.0, 7.68, 150.0, POLICY)[1].status == "regressed"


def test_a_threshold_that_somebody_sets_replaces_the_floor_of_the_peak() -> None:
    by_metric = parse_config(
        "[metrics.host_memory_over_setup]\nthreshold = 4194304\n", "perfci.toml"
    ).policy
    by_benchmark = replace(
        POLICY, thresholds={"encoder": {"host_memory_over_setup": float(4 << 20)}}
    )
    for policy in (by_metric, by_benchmark):
        working = memory_rows(3.0, 7.68, 260.0, policy)[1]
        assert (working.status, working.threshold) == ("regressed", 4 << 20)


def test_bytes_of_collectives_that_move_by_less_than_a_hundredth_are_unchanged() -> None:
    for head, expected in ((1005.0, "unchanged"), (1020.0, "regressed")):
        row = compared("collective_bytes", [1000.0] * 5, [head] * 5)
        assert (row.method, row.status, row.threshold) == ("exact", expected, 10.0)


def test_memory_that_is_decided_asks_for_no_more_rounds() -> None:
    from perfci.verdict.stopping import undecided_metrics

    metric = "host_memory_over_setup"
    mebibytes = [8.0, 8.05, 7.96, 8.02, 7.97]
    base = side("base", metric, [value * (1 << 20) for value in mebibytes])
    for more, wanted in ((0.0, ()), (4.0, (metric,)), (8.0, ())):
        values = [(value + more + 0.2 * (8.0 - value)) * (1 << 20) for value in mebibytes]
        rows = compare_case(case(), base, side("head", metric, values), POLICY, paired=True)
        assert undecided_metrics(rows, POLICY, 1) == wanted


def test_two_workers_that_agree_by_luck_make_no_amount_exact() -> None:
    """Seen: 0 B/call on base and 747 on head, of code that leaks nothing, in two rounds."""
    sides = side("base", "memory_growth", [0.0] * 2), side("head", "memory_growth", [747.0] * 2)
    (row,) = adjust(compare_case(case(), *sides, POLICY, paired=True), POLICY)
    assert row.status == "inconclusive"
    assert row.method != "exact"


def test_two_workers_a_side_that_all_agree_make_an_amount_exact() -> None:
    row = compared("memory_growth", [0.0, 0.4], [1.0, 0.0])
    assert (row.method, row.status) == ("exact", "unchanged")
    assert compared("memory_growth", [0.0], [0.0]).method != "exact"
    assert compared("memory_growth", [0.0, 0.0], [0.0, 2.0]).method != "exact"
