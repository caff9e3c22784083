"""A change that no case used: said first, and no pass where the policy is strict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.finding import NOTHING_EXERCISED, finding
from perfci.model.report import Comparison, Report, Verdict
from perfci.report.view import ReportView
from perfci.verdict.acceptance import enforced
from perfci.verdict.decision import with_verdict
from perfci.verdict.merge import joined_findings
from tests.verdict.shards import POLICY, paired, shard

FINDING = finding(NOTHING_EXERCISED, names="a.py, b.py, c.py", more=2)
SAID = "no case used the changed files (a.py, b.py, c.py and 2 more): write a benchmark that does"


def decided(rows: tuple[Comparison, ...] = (), *, strict: bool = False, part: str = "") -> Report:
    report = shard(1, 1, paired("case"), findings=(FINDING,), shard=part)
    report = replace(report, results=(*report.results, *rows))
    return with_verdict(report, replace(POLICY, strict=strict))


def test_a_pass_says_so_first_and_once() -> None:
    report = decided()
    assert report.verdict.status == "pass"
    assert ReportView(report).headline.startswith(f"{SAID}; no regression in ")
    assert ReportView(report).reasons == ()


def test_a_strict_policy_does_not_let_it_pass_also_where_it_is_enforced_elsewhere() -> None:
    assert decided(strict=True).verdict.status == "inconclusive"
    assert ReportView(decided(strict=True)).headline == SAID
    held = enforced(decided(), replace(POLICY, strict=True))
    assert held.verdict.status == "inconclusive"
    assert held.verdict.findings[0].code == NOTHING_EXERCISED


def test_a_failure_stays_one() -> None:
    rows = (paired("case", 2.0, status="regressed"),)
    verdict = with_verdict(replace(decided(), results=rows), POLICY).verdict
    assert verdict.status == "fail"
    assert [reason.code for reason in verdict.findings].index(NOTHING_EXERCISED) > 0


def test_a_new_case_may_use_it() -> None:
    new = replace(decided().results[0], case="new", status="new", base=None)
    codes = [reason.code for reason in decided((new,), strict=True).verdict.findings]
    assert codes == ["rare-state"]


@pytest.mark.parametrize(("second", "left"), [((), ()), ((FINDING,), (FINDING,))])
def test_shards_say_it_only_where_all_do(
    second: tuple[object, ...], left: tuple[object, ...]
) -> None:
    assert decided(strict=True, part="1/2").verdict == Verdict("pass", ())
    reports = [
        shard(1, 2, paired("one"), findings=(FINDING,)),
        shard(2, 2, paired("two"), findings=second),
    ]
    assert joined_findings(reports) == left
