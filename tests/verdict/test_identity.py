"""A case that ran no changed file: untouched, without a test."""

from dataclasses import replace

import pytest

from perfci.model.report import Comparison, Verdict
from perfci.verdict.acceptance import enforced
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.decision import decide
from perfci.verdict.row_status import adjust, may_be_untouched, untouched_rows
from tests.verdict.shards import POLICY, shard
from tests.verdict.workers import case, held_to, worker


def compared(base: dict[str, float], head: dict[str, float]) -> tuple[Comparison, ...]:
    """Return what one round says."""
    sides = ((worker("base", 1, base),), (worker("head", 1, head),))
    return compare_case(case(), *sides, POLICY, paired=True)


def test_one_round_without_a_changed_file_is_untouched_and_costs_the_verdict_nothing() -> None:
    rows = compared(
        {"latency_p50": 0.010, "host_memory_over_setup": 1.0, "graph_breaks": 2.0},
        {"latency_p50": 0.0103, "host_memory_over_setup": 2e6, "graph_breaks": 2.0},
    )
    assert may_be_untouched(rows)
    assert decide(adjust(rows, POLICY), (), POLICY).status == "inconclusive"

    settled = adjust(untouched_rows(rows), POLICY)

    assert {row.method for row in settled} == {"none", "exact"}
    assert {row.status for row in settled} == {"untouched", "unchanged"}
    assert decide(settled, (), POLICY).status == "pass"
    latency = next(row for row in settled if row.metric == "latency_p50")
    assert (latency.base.center, latency.head.center) == (0.010, 0.0103)
    assert latency.ratio is None
    assert latency.p is None


def test_a_count_that_differs_speaks_against_it() -> None:
    assert not may_be_untouched(compared({"graph_breaks": 2.0}, {"graph_breaks": 3.0}))


@pytest.mark.parametrize("head", [0.0152, 0.0066, 0.043])
def test_a_gating_row_beyond_its_threshold_speaks_against_it(head: float) -> None:
    assert not may_be_untouched(compared({"latency_p50": 0.010}, {"latency_p50": head}))


def test_a_row_that_warns_and_moved_beyond_its_threshold_is_not_called_untouched() -> None:
    base = {"latency_p50": 0.010, "latency_p95": 0.011, "latency_max": 0.011}
    rows = compared(base, {**base, "latency_p95": 0.047, "latency_max": 0.047})
    assert may_be_untouched(rows)
    settled = adjust(untouched_rows(rows), POLICY)
    assert {row.metric: row.status for row in settled} == {
        "latency_p50": "untouched",
        "latency_p95": "inconclusive",
        "latency_max": "untouched",
    }
    assert decide(settled, (), POLICY).status == "pass"


def test_a_metric_that_head_lost_speaks_against_it() -> None:
    both = {"latency_p50": 0.010}
    assert not may_be_untouched(compared({**both, "cold_start": 1.0}, both))


def test_no_other_policy_takes_it_for_undecided() -> None:
    rows = untouched_rows(compared({"latency_p50": 0.010}, {"latency_p50": 0.0103}))
    missing = dict.fromkeys(("peak_host_memory", "host_memory_over_setup"), "no memory in /proc")
    report = replace(
        shard(1, 1),
        results=adjust(rows, POLICY),
        shard="",
        verdict=Verdict("pass", ()),
        not_measured=missing,
    )
    strict = held_to("latency_p50", 0.001, "fail")
    assert enforced(report, replace(POLICY, alpha=0.001, metrics=strict)).verdict.status == "pass"
