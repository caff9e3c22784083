"""A line accepts the regression that it names: no other, no larger, no longer, and no fork's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.finding import stated
from perfci.model.report import Comparison, Report, Verdict
from perfci.verdict.acceptance import Acceptance, accept, believed, enforced
from perfci.verdict.decision import decide
from perfci.verdict.row_status import adjust
from tests.verdict.shards import POLICY, paired, shard

(SLOWER,) = adjust([paired("a[8]", 1.3)], POLICY)
LINE = Acceptance(
    case="a[8]", metric="latency_p50", because="masks cost time", by="Ada", until="2026-12-31"
)
TODAY = "2026-11-23"


def accepted(row: Comparison = SLOWER, line: Acceptance = LINE, **how: object) -> Comparison:
    (one,), _ = accept([row], [line], TODAY, **how)  # type: ignore[arg-type]
    return one


def reported(*rows: Comparison) -> Report:
    verdict = decide(rows, (), POLICY)
    return replace(shard(1, 1), results=rows, shard="", verdict=verdict)


def test_an_accepted_regression_passes_and_the_verdict_says_who_and_why() -> None:
    assert decide([SLOWER], (), POLICY).status == "fail"
    row = accepted()
    assert (row.status, row.gate) == ("regressed", "fail")
    verdict = decide([row], (), POLICY)
    assert verdict.status == "pass"
    (said,) = verdict.reasons
    assert said.startswith("accepted by Ada: a[8]: latency_p50 +")
    assert said.endswith("(threshold 5 %): masks cost time")


def test_it_accepts_no_other_row() -> None:
    others = (paired("a[8]", 1.3, metric="cold_start"), paired("a[80]", 1.3))
    rows = adjust([SLOWER, *others], POLICY)
    judged, _ = accept(rows, [LINE], TODAY)
    assert [row.accepted is not None for row in judged] == [True, False, False]
    assert decide(judged, (), POLICY).status == "fail"


@pytest.mark.parametrize(
    ("changed", "how", "said"),
    [
        ({"up_to": 0.2}, {}, "it is accepted up to 20 % only"),
        ({"until": "2026-11-22"}, {}, "it was accepted until 2026-11-22"),
        ({}, {"refused": [LINE]}, "entries from a fork are ignored"),
        ({"until": ""}, {"old": [replace(LINE, until="")]}, "without `up_to` or `until`"),
    ],
)
def test_a_line_that_does_not_count_fails_as_before_and_the_row_says_why(
    changed: dict[str, object], how: dict[str, object], said: str
) -> None:
    row = accepted(line=replace(LINE, **changed), **how)
    assert row.accepted is None
    assert decide([row], (), POLICY).status == "fail"
    assert said in row.warnings[0]


@pytest.mark.parametrize(
    ("changed", "how"),
    [
        ({"up_to": 0.4}, {}),
        ({"until": TODAY}, {}),
        ({"until": "", "up_to": 0.4}, {"old": [replace(LINE, until="", up_to=0.4)]}),
    ],
)
def test_a_line_counts_within_its_bounds(
    changed: dict[str, object], how: dict[str, object]
) -> None:
    assert accepted(line=replace(LINE, **changed), **how).accepted is not None


@pytest.mark.parametrize(
    ("case", "metric", "accepts"),
    [
        ("*", "*", [True, True, True]),
        ("*", "latency_p50", [True, False, True]),
        ("a[8]", "*", [True, True, False]),
        ("a[*]", "latency_*", [True, False, True]),
        ("*0]", "*", [False, False, True]),
        ("a[80", "*", [False, False, False]),
        ("a.8.", "*", [False, False, False]),
    ],
)
@pytest.mark.parametrize("how", ["own", "fork"])
def test_an_asterisk_stands_for_any_text(
    case: str, metric: str, accepts: list[bool], how: str
) -> None:
    others = (paired("a[8]", 1.3, metric="cold_start"), paired("a[80]", 1.3))
    rows = adjust([SLOWER, *others], POLICY)
    line = replace(LINE, case=case, metric=metric)
    judged, findings = accept(rows, [line], TODAY)
    if how == "fork":
        trusting = tuple(replace(row, accepted=accepted().accepted) for row in rows)
        judged = believed(reported(*trusting), False, [line], TODAY, POLICY).results
    assert [row.accepted is not None for row in judged] == accepts
    assert bool(findings) is not any(accepts)


def test_the_rows_own_entry_goes_before_one_with_asterisks() -> None:
    own = replace(LINE, up_to=0.1)
    for lines in ([own, replace(LINE, case="*")], [replace(LINE, case="*"), own]):
        (row,), _ = accept([SLOWER], lines, TODAY)
        assert row.accepted is None


def test_a_part_of_a_report_says_nothing_of_cases_that_are_elsewhere() -> None:
    assert accept([paired("b", 1.3)], [LINE], TODAY, whole=False)[1] == ()


def test_who_may_write_to_the_repository_is_believed() -> None:
    report = reported(accepted())
    assert believed(report, True, (), TODAY, POLICY) is report
    assert enforced(report, POLICY).verdict.status == "pass"


def test_a_forks_author_accepts_nothing() -> None:
    report = believed(reported(accepted()), False, (), TODAY, POLICY)
    assert report.verdict.status == "fail"
    assert report.results[0].accepted is None
    assert "entries from a fork are ignored" in report.results[0].warnings[0]


def test_a_line_of_the_default_branch_accepts_what_a_fork_measured() -> None:
    forged = replace(LINE, because="trust me", by="Ada")
    report = reported(accepted(line=forged))
    (row,) = believed(report, False, [LINE], TODAY, POLICY).results
    assert row.accepted is not None
    assert row.accepted.because == "masks cost time"
    unbounded = replace(LINE, until="")
    assert believed(report, False, [unbounded], TODAY, POLICY).verdict.status == "fail"


def test_a_bound_that_is_over_when_the_report_is_posted_counts_no_more() -> None:
    assert believed(reported(accepted()), True, (), "2027-01-01", POLICY).verdict.status == "fail"


def test_what_a_merge_lacks_is_kept() -> None:
    warned = replace(accepted(), gate="warn")
    report = replace(
        reported(warned), verdict=Verdict("inconclusive", (stated("incomplete"),)), missing=("2/4",)
    )
    again = believed(report, False, (), TODAY, POLICY)
    assert again.results[0].accepted is None
    assert (again.verdict.status, again.missing) == ("inconclusive", ("2/4",))


def test_a_report_cannot_hide_a_regression_behind_another_accepted_row() -> None:
    worse = replace(paired("b", 2.0), status="unchanged", threshold=9.0)
    report = replace(reported(accepted(), worse), verdict=Verdict("pass", ()))
    assert enforced(believed(report, True, (), TODAY, POLICY), POLICY).verdict.status == "fail"
