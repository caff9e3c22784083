"""What is said first of a report, in every format."""

from __future__ import annotations

from dataclasses import replace

from perfci.finding import finding
from perfci.model.case import Failure
from perfci.report.view import ReportView
from perfci.verdict.decision import decide
from tests.report.examples import (
    EAGER,
    TOKENS,
    alone_report,
    bare,
    passing_report,
    rich_report,
    row,
)
from tests.verdict.shards import POLICY


def failed(case: str) -> Failure:
    return Failure(case, "head", "setup", "ValueError", "no")


def test_a_run_counts_what_was_measured_and_what_failed_apart() -> None:
    report = replace(alone_report(), failures=(failed("x"), failed("y"), failed("y")))
    assert ReportView(report).headline == "2 cases measured, nothing compared; 2 failed"


def test_a_fail_counts_the_cases_that_failed_beside_the_regressions() -> None:
    report = rich_report(failures=(failed("x"), failed("y"), failed("y")))
    assert ReportView(report).headline.startswith(
        "2 regressions in 2 of 10 cases, 2 failed; furthest "
    )


def test_a_change_without_a_ratio_is_worded_by_its_reason() -> None:
    lost = finding("coarser-output", where="output", head="bfloat16", base="float32")
    ruled = row(EAGER, "accuracy_loss", 0.8, 26955.0, "regressed", ratio=None, findings=(lost,))
    report = passing_report()
    report = replace(report, results=(ruled,), verdict=decide((ruled,), (), POLICY))
    assert ReportView(report).headline.endswith(
        f"{EAGER} accuracy_loss `output` is bfloat16, was float32"
    )


def test_a_pass_counts_what_was_compared_and_tells_what_was_removed_or_is_new() -> None:
    report = passing_report()
    assert ReportView(report).headline == "no regression in 2 cases"
    renamed = (bare("b", "removed", "head hasn't got it"), bare("c", "new", "base hasn't got it"))
    report = replace(report, results=(*report.results, *renamed))
    assert ReportView(report).headline == "no regression in 2 cases; 1 removed case, 1 new case"
    better = row(TOKENS, "latency_p50", 31e-6, 26e-6, "improved")
    report = replace(report, results=(*report.results, bare("d", "removed", "gone"), better))
    assert ReportView(report).headline == (
        "no regression in 3 cases; 1 improvement, 2 removed cases, 1 new case"
    )


def test_a_metric_that_head_no_longer_reports_is_named_in_the_headline_of_a_pass() -> None:
    lost = row(EAGER, "peak_host_memory", 1.0, 1.0, "removed", head=None, method="none", ratio=None)
    informs = replace(lost, metric="latency_p95", gate="warn")
    gone = bare("sampler", "removed", "head hasn't got it")
    report = passing_report()
    one = replace(report, results=(*report.results, lost, informs, gone))
    said = "no regression in 2 cases; 1 removed case, 1 removed metric"
    assert ReportView(one).headline == f"{said} ({EAGER} peak_host_memory)"
    skipping = replace(report, skipped={"slow": "today"})
    assert ReportView(skipping).headline == "no regression in 2 cases; 1 skipped case"
    two = replace(one, results=(*one.results, replace(lost, metric="cold_start")))
    assert ReportView(two).headline.endswith(
        f"2 removed metrics ({EAGER} peak_host_memory and 1 more)"
    )
    # a case that reports nothing any more was measured for nothing
    only = decide((lost,), (), POLICY)
    assert (only.status, only.reasons[0]) == ("error", "nothing was measured")


def test_a_pass_counts_what_looks_slower_and_is_not_decided() -> None:
    tail = row(TOKENS, "latency_p95", 31e-6, 36e-6, "inconclusive")
    noise = row(TOKENS, "latency_p99", 31e-6, 30e-6, "inconclusive")
    maybe = replace(tail, metric="latency_mean", ratio_lo=0.9, ratio_hi=1.7)
    report = replace(passing_report(), results=(*passing_report().results, tail, noise, maybe))
    assert ReportView(report).headline == "no regression in 3 cases; 1 undecided slow-down"
