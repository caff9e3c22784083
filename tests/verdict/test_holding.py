"""A pass that another configuration gave is held to the one here, and nothing is made laxer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.record.report import Comparison, Report, Verdict, VerdictStatus
from perfci.verdict.deciding import decide
from perfci.verdict.failing import placeholder
from perfci.verdict.holding import ELSEWHERE, doubted, held
from perfci.verdict.policy import MetricPolicy
from tests.verdict.shards import POLICY, paired, shard
from tests.verdict.workers import failure

LENIENT = replace(POLICY, metrics={"latency_p50": MetricPolicy(0.05, "fail", "pass")})
UNDECIDED = replace(paired("a", 1.03), status="inconclusive", ratio_lo=0.9, ratio_hi=1.2)


def passing(*rows: Comparison, **changes: object) -> Report:
    return replace(shard(1, 1), results=rows, shard="", verdict=Verdict("pass", ()), **changes)


def test_a_pass_over_what_is_undecided_here_is_inconclusive() -> None:
    report = held(passing(UNDECIDED), POLICY)
    assert report.verdict.status == "inconclusive"
    assert report.verdict.reasons[0].startswith("a: latency_p50 +3.0 % (-10.0 … +20.0 %), inconcl")
    assert report.verdict.reasons[-1] == ELSEWHERE
    assert report.results == (UNDECIDED,)


def test_a_pass_that_the_policy_here_gives_too_stays_as_it_is() -> None:
    for row in (UNDECIDED, paired("a", 1.0)):
        report = passing(row)
        assert held(report, LENIENT) is report


WIDE = replace(paired("a", 2.0), status="unchanged", threshold=9.0)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            WIDE,
            "a: latency_p50 +100.0 % (threshold 5 %), passed for a threshold of 900 %",
        ),
        (
            replace(paired("a", 2.0), status="regressed", gate="info"),
            "a: latency_p50 +100.0 % (threshold 5 %), passed for gate = 'info'",
        ),
    ],
)
def test_what_only_a_laxer_configuration_lets_pass_is_no_pass(row: Comparison, told: str) -> None:
    assert decide((row,), (), POLICY).status == "pass"
    assert held(passing(row), POLICY).verdict == Verdict(
        "inconclusive", (f"{told} in the report", ELSEWHERE)
    )


def test_a_wider_threshold_that_is_configured_here_or_lets_nothing_more_pass_is_as_good() -> None:
    wide_here = replace(POLICY, thresholds={"a": {"latency_p50": 9.0}})
    unknown = replace(WIDE, metric="loss", gate="fail")
    quiet = replace(paired("a", 1.0), threshold=9.0, gate="warn")
    undecided = replace(paired("a", 1.2), status="inconclusive")
    of_here = ((WIDE, wide_here), (unknown, POLICY), (quiet, POLICY), (undecided, LENIENT))
    for row, policy in of_here:
        report = passing(row)
        assert held(report, policy) is report


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (placeholder("b", "not_comparable", POLICY, "another GPU"), "inconclusive"),
        (replace(paired("b"), metric="loss", head=None, status="inconclusive"), "error"),
    ],
)
def test_what_no_policy_lets_pass_is_no_pass(row: Comparison, expected: VerdictStatus) -> None:
    assert held(passing(paired("a"), row), LENIENT).verdict.status == expected


def test_a_pass_with_failures_on_both_sides_or_of_half_a_session_is_none() -> None:
    both = (failure("b", "base"), failure("b", "head"))
    assert held(passing(paired("a"), failures=both), POLICY).verdict.status == "inconclusive"
    assert held(passing(paired("a"), interrupted=True), POLICY).verdict.status == "inconclusive"


def test_a_shard_that_had_nothing_to_measure_passes() -> None:
    report = replace(passing(), shard="2/4")
    assert held(report, POLICY) is report
    assert held(passing(), POLICY).verdict.status == "error"


@pytest.mark.parametrize("status", ["fail", "error", "inconclusive"])
def test_what_is_no_pass_is_made_no_better(status: VerdictStatus) -> None:
    report = replace(passing(paired("a")), verdict=Verdict(status, ("why",)))
    assert decide(report.results, (), POLICY).status == "pass"
    assert held(report, POLICY) is report


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("pass", ("inconclusive", ("doubt", "why"))),
        ("inconclusive", ("inconclusive", ("doubt", "why"))),
        ("fail", ("fail", ("why", "doubt"))),
        ("error", ("error", ("why", "doubt"))),
    ],
)
def test_a_doubt_keeps_a_report_from_passing_and_is_told(
    status: VerdictStatus, expected: tuple[VerdictStatus, tuple[str, ...]]
) -> None:
    report = replace(passing(paired("a")), verdict=Verdict(status, ("why",)))
    assert doubted(report, "doubt").verdict == Verdict(*expected)
    assert doubted(report, "") is report
