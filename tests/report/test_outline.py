"""What is said first of a report, in every format."""

from __future__ import annotations

from dataclasses import replace

from perfci.model.case import Failure
from perfci.model.finding import Reason, because, finding, stated
from perfci.model.report import Verdict
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.outline import headline, outline
from perfci.report.terminal import render_terminal
from perfci.verdict.decision import decide, failed_finding
from tests.report.examples import (
    EAGER,
    TOKENS,
    alone_report,
    bare,
    passing_report,
    rendered,
    rich_report,
    row,
)
from tests.verdict.shards import POLICY


def failed(case: str) -> Failure:
    return Failure(case, "head", "setup", "ValueError", "no")


def test_a_run_counts_what_was_measured_and_what_failed_apart() -> None:
    report = replace(alone_report(), failures=(failed("x"), failed("y"), failed("y")))
    assert headline(outline(report)) == "2 cases measured, nothing compared; 2 failed"


def test_a_case_that_failed_in_a_later_round_is_not_counted_as_measured() -> None:
    report = replace(alone_report(), failures=(failed(EAGER),))
    assert headline(outline(report)) == "1 case measured, nothing compared; 1 failed"


def test_what_failed_is_named_and_its_message_left_to_where_it_is_told() -> None:
    broken = Reason("failed", "x", because=failed_finding(failed("x")))
    report = rich_report(
        verdict=Verdict("error", (broken, stated("y: too"))),
        results=(),
        failures=(failed("x"),),
    )
    assert headline(outline(report)) == '"x" failed on head in setup (and 1 more)'
    other = replace(report, verdict=Verdict("error", (stated("nothing was measured"),)))
    assert headline(outline(other)) == "nothing was measured"


def test_a_warning_of_an_undecided_row_stands_below_what_was_decided() -> None:
    warning = Reason("warned-undecided", TOKENS, "latency_p99", {"ratio": 1.4, "threshold": 0.1})
    report = rich_report()
    verdict = Verdict(report.verdict.status, (*report.verdict.findings, warning))
    report = replace(report, verdict=verdict)
    text = render_markdown(report)
    assert text.count("though undecided") == 1
    assert text.index("| metric |") < text.index("though undecided") < text.index("**Why**")
    for form in ("terminal", "html"):
        assert rendered(report, form).count("though undecided") == 1, form


def test_what_decides_are_the_rounds_of_the_rows_that_leave_the_verdict_open() -> None:
    few = because("looks-regressed", finding("few-rounds", rounds=5, needed=6, setting="rounds"))
    noisy = finding("more-rounds", change=0.8, threshold=0.1, rounds=126, setting="rounds")
    rows = (
        row(EAGER, "latency_p50", 1e-3, 1.4e-3, "inconclusive", findings=(few,)),
        row(EAGER, "cold_start", 2.0, 2.1, "inconclusive", findings=(noisy,)),
    )
    verdict = Verdict("inconclusive", (Reason("undecided", EAGER, "latency_p50", because=few),))
    head = replace(rich_report().head, dirty=False)
    report = replace(passing_report(), head=head, results=rows, verdict=verdict)
    (line,) = (line for line in render_markdown(report).splitlines() if "To decide" in line)
    assert line.endswith(" --rounds 6</code>")


def test_a_fail_counts_the_cases_that_failed_beside_the_regressions() -> None:
    report = rich_report(failures=(failed("x"), failed("y"), failed("y")))
    assert headline(outline(report)).startswith("2 regressions in 2 of 10 cases, 2 failed: worst ")


def test_a_pass_counts_what_was_compared_and_tells_what_was_removed_or_is_new() -> None:
    report = passing_report()
    assert headline(outline(report)) == "no regression in 2 cases"
    renamed = (bare("b", "removed", "head hasn't got it"), bare("c", "new", "base hasn't got it"))
    report = replace(report, results=(*report.results, *renamed))
    assert headline(outline(report)) == "no regression in 2 cases; 1 removed case, 1 new case"
    better = row(TOKENS, "latency_p50", 31e-6, 26e-6, "improved")
    report = replace(report, results=(*report.results, bare("d", "removed", "gone"), better))
    assert headline(outline(report)) == (
        "no regression in 3 cases; 1 improvement, 2 removed cases, 1 new case"
    )


def test_a_metric_that_head_no_longer_reports_is_named_in_the_headline_of_a_pass() -> None:
    lost = row(EAGER, "peak_host_memory", 1.0, 1.0, "removed", head=None, method="none", ratio=None)
    informs = replace(lost, metric="latency_p95", gate="warn")
    gone = bare("sampler", "removed", "head hasn't got it")
    report = passing_report()
    one = replace(report, results=(*report.results, lost, informs, gone))
    said = "no regression in 2 cases; 1 removed case, 1 removed metric"
    assert headline(outline(one)) == f"{said} ({EAGER} peak_host_memory)"
    skipping = replace(report, skipped={"slow": "today"})
    assert headline(outline(skipping)) == "no regression in 2 cases; 1 skipped case"
    two = replace(one, results=(*one.results, replace(lost, metric="cold_start")))
    assert headline(outline(two)).endswith(
        f"2 removed metrics ({EAGER} peak_host_memory and 1 more)"
    )
    # a case that reports nothing any more was measured for nothing
    only = decide((lost,), (), POLICY)
    assert (only.status, only.reasons[0]) == ("error", "nothing was measured")


def test_undecided_rows_stand_in_the_table_and_not_once_more_below_the_verdict() -> None:
    few = (finding("too-few", count=2, what="round", needed=5, setting=""),)
    cases = tuple(f"layer[width={width}]" for width in range(12))
    rows = tuple(row(case, "latency_p50", 1.0, 1.1, "inconclusive", findings=few) for case in cases)
    report = replace(passing_report(), results=rows, verdict=decide(rows, (), POLICY), why=())
    assert len(report.verdict.findings) == 12
    text = render_terminal(report, 200, False)
    lines = text.splitlines()
    assert [sum(case in line for line in lines[:-2]) for case in cases] == [1] * 12
    assert lines[-2] == (
        f"perfci: inconclusive — 12 of 12 cases undecided: {cases[0]} latency_p50 and 11 more"
    )
    assert text.count("2 rounds are too few") == 1
    assert "12 rows: " in text
    assert "12 rows: " not in render_terminal(report, 200, False, verbose=True)
    assert "and 6 more" not in render_markdown(report)
