"""The comment on a pull request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from perfci.model.finding import Reason, stated
from perfci.model.report import Report, Verdict
from perfci.report.exporters.markdown import metric_words
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.templates import LIMIT, cut
from tests.report.examples import (
    EAGER,
    alone_report,
    passing_report,
    rich_report,
    row,
)
from tests.report.rendered import with_markdown_it

REPORTS = {"fail": rich_report, "pass": passing_report, "run": alone_report}


@pytest.mark.parametrize("name", REPORTS)
def test_the_comment_is_as_it_was(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"comment-{name}.md", render_markdown(REPORTS[name]()))


def test_the_verdict_comes_first_and_counts_what_the_table_shows() -> None:
    lines = render_markdown(rich_report()).splitlines()
    assert lines[0] == "<!-- perfci -->"
    assert lines[1] == "### ❌ perfci: 2 regressions in 2 cases, 1 case failed"


def test_before_the_folds_stand_only_the_rows_that_decide() -> None:
    open_part = render_markdown(rich_report()).split("<details>")[0]
    page = with_markdown_it(open_part)
    assert len(page.cells) == 2 * 4  # as many rows as the heading counts; failures stand below
    assert [cell.split()[0] for cell in page.cells[1::4]] == ["graph", "latency"]
    assert "Folded below: 1 warning, 2 improvements and 2 undecided rows." in page.plain


def test_the_statistics_stand_folded_under_the_table() -> None:
    text = render_markdown(rich_report())
    assert text.index("graph breaks 0") < text.index("<details><summary>Statistics")
    cells = with_markdown_it(text).cells
    row = cells.index("paired t, 6\N{NO-BREAK SPACE}pairs, df 5")
    assert cells[row - 1 : row + 4] == [
        "latency_p50", "paired t, 6\N{NO-BREAK SPACE}pairs, df 5",
        "<\N{NO-BREAK SPACE}0.0001", "0.00013", "2.50\N{NO-BREAK SPACE}(large)",
    ]  # fmt: skip
    assert "small from 0.2" in text


def test_what_nothing_was_tested_of_has_no_statistics() -> None:
    assert "Statistics" not in render_markdown(alone_report())


def test_a_comment_lists_thirty_tests_and_counts_the_rest() -> None:
    rows = [row(f"case{at}", "latency_p50", 1.0, 1.001, "unchanged") for at in range(40)]
    text = render_markdown(replace(passing_report(), results=tuple(rows)))
    assert text.count("| paired t, ") == 30
    assert "10 more rows were tested." in text


def test_every_row_of_the_report_stands_somewhere() -> None:
    report = rich_report()
    page = with_markdown_it(render_markdown(report))
    text = "\n".join(page.cells) + page.everything
    for one in report.results:
        assert one.case in text
        assert one.head is None or any(
            cell.startswith((metric_words(one.metric), f"warning: {metric_words(one.metric)}"))
            for cell in page.cells
        )


def test_what_only_informs_and_is_unchanged_is_counted_and_not_listed() -> None:
    same = passing_report()
    more = row(EAGER, "latency_sd", 1e-5, 1e-5, "unchanged")
    text = render_markdown(replace(same, results=(*same.results, more)))
    assert "3 unchanged" in text
    assert "latency sd" not in text


def test_an_unconfirmed_regression_says_so() -> None:
    report = rich_report(
        results=(row(EAGER, "latency_p50", 1.0, 1.2, "regressed", confirmed=False),),
        verdict=Verdict(
            "fail",
            (
                Reason("regressed", EAGER, "latency_p50", {"ratio": 1.2, "threshold": 0.05}),
                Reason("unconfirmed"),
            ),
        ),
    )
    text = render_markdown(report)
    assert "· unconfirmed |" in text
    assert "\n- unconfirmed: base and head" in text


def test_no_baseline_at_all_is_said() -> None:
    report = replace(
        rich_report(verdict=Verdict("inconclusive", (stated("nothing to compare with: 1 new"),))),
        base=None,
        command="check",
    )
    text = render_markdown(report)
    assert "### ❔ perfci: undecided: nothing to compare with: 1 new" in text
    assert " no baseline → " in text


def test_a_huge_report_is_cut_and_still_renders() -> None:
    rows = tuple(
        row(f"case_{number}", "latency_p50", 1.0, 1.2, "regressed") for number in range(2000)
    )
    text = render_markdown(rich_report(results=rows))
    page = with_markdown_it(text)
    shown = sum(cell.startswith("case_") for cell in page.cells)
    assert len(text) <= LIMIT
    assert f"{2000 + 30 - shown} table rows" in text  # thirty have their statistics, too


def test_a_cut_closes_what_is_open() -> None:
    for limit in range(700, 7000, 151):
        text = render_markdown(rich_report(), limit=limit)
        assert len(text) <= limit
        assert text.count("<details>") == text.count("</details>")
        assert sum(line.startswith("```") for line in text.splitlines()) % 2 == 0
        assert "pre" not in with_markdown_it(text).tags[-1]


def test_a_cut_between_header_and_separator_drops_the_header() -> None:
    table = "x\n\n| a |\n|---|\n" + "| 1 |\n" * 200
    for limit in range(404, 440):
        kept = cut(table, limit)
        assert kept.count("| a |") == kept.count("|---|")
        assert f"{200 - kept.count('| 1 |')} table rows" in kept


def test_rows_that_no_comment_has_room_for_are_counted_and_not_written() -> None:
    many = tuple(row(f"case{number}", "latency_p50", 1, 1, "unchanged") for number in range(1_200))
    skipped = dict.fromkeys(map(str, range(1_300)), "no GPU")
    report = replace(passing_report(), results=many, skipped=skipped)
    text = render_markdown(report, limit=10**9)
    assert text.count("| <code>case") == 1_000 + 30  # and those of the statistics
    assert "Cut to fit: 200 table rows and" in text
    assert text.count("no GPU") == 1_000
    assert "- and 300 more" in text
    assert "1200 unchanged" in text


def test_a_line_longer_than_the_limit_leaves_the_note_alone() -> None:
    text = cut("short\n" + "x" * 1000, 500)
    assert text.startswith("short\n")
    assert "left out" in text


@pytest.mark.parametrize("report", [rich_report(), passing_report(), alone_report()])
def test_no_two_blank_lines_follow_each_other(report: Report) -> None:
    for one in (report, replace(report, notes=()), replace(report, explanations=(), results=())):
        assert "\n\n\n" not in render_markdown(one)


def test_a_case_that_was_not_measured_has_not_passed() -> None:
    rows = (
        row("slower", "latency_p50", 1.0, 1.2, "regressed"),
        row("alike", "latency_p50", 1.0, 1.0, "unchanged"),
        row("left_out", "latency_p50", 1.0, 1.0, "not_measured"),
    )
    assert "\n❌ 1 ❔ 1 ✅ 1 · " in render_markdown(rich_report(results=rows, failures=()))
