"""The report at a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.cells import cell_len

from perfci.finding import LOOKS_SLOWER, Reason, finding
from perfci.model.report import Verdict
from perfci.report.rows import BLAME, Row
from perfci.report.terminal import render_terminal
from perfci.report.view import ReportView
from tests.report.examples import EAGER, alone_report, hostile_report, passing_report, rich_report
from tests.report.examples import row as row_of

REPORTS = {"fail": rich_report, "pass": passing_report, "run": alone_report}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", REPORTS)
def test_the_terminal_is_as_it_was(
    name: str, width: int, golden: Callable[[str, str], None]
) -> None:
    golden(f"terminal-{name}-{width}.txt", render_terminal(REPORTS[name](), width, False))


def test_verbose_shows_every_comparison() -> None:
    report = rich_report()
    text = render_terminal(report, 120, False, verbose=True)
    for row in report.results:
        if row.head is not None:
            assert row.metric in text
    assert len(re.findall(r"latency_p50 ", text)) == 4
    assert "not measured: device_time_p50 (no CUDA device)" in text


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_nothing_is_wider_than_the_terminal_and_nothing_is_lost(width: int, verbose: bool) -> None:
    text = render_terminal(rich_report(), width, False, verbose=verbose)
    assert max(map(cell_len, text.splitlines())) <= width
    for needed in (EAGER, "1.23 → 1.31 ms", "+6.5 %", "(+5.4…+7.6)", "confirmed"):
        assert needed in text
    assert "…(" not in text


def test_without_colour_there_is_no_escape_sequence() -> None:
    assert "\x1b" not in render_terminal(hostile_report("\x1b[31mred\x1b[0m"), 80, False)
    assert "\x1b[" in render_terminal(rich_report(), 80, True)


def test_rich_markup_in_a_name_is_text() -> None:
    assert "[bold]x[/bold]" in render_terminal(hostile_report("[bold]x[/bold]"), 80, False)


def test_verbose_names_the_likely_cause_of_each_row_in_a_sentence() -> None:
    report = rich_report(failures=())
    text = " ".join(render_terminal(report, 120, False, verbose=True).split())
    for cause, blame in BLAME.items():
        rows = [row for row in report.results if Row(row).cause == cause]
        assert text.count(f"likely cause: {blame}") == len(rows)
    assert "blame" not in text


def test_a_row_that_looks_slower_is_shown_with_its_numbers() -> None:
    slower = row_of(EAGER, "cold_start", 0.2, 1.8, "inconclusive")
    report = replace(
        passing_report(),
        results=(*passing_report().results, slower),
        verdict=Verdict("inconclusive", (Reason(LOOKS_SLOWER, EAGER, "cold_start"),)),
    )
    text = render_terminal(report, 100, False)
    assert re.search("inconclusive +cold_start +200 ms → 1.8 s", text), text


def test_a_failure_counts_no_reasons_of_another_kind() -> None:
    reasons = (
        Reason("failed-on-base", EAGER),
        Reason("interrupted"),
        Reason("failed-on-base", "third"),
    )
    report = replace(passing_report(), verdict=Verdict("error", reasons))
    assert ReportView(report).headline.endswith(" (and 1 more)")


def test_an_unchanged_row_has_the_remarks_that_the_comment_has() -> None:
    report = passing_report()
    idle = finding("does-nothing", seconds=3e-8)
    rows = [replace(row, findings=(idle, *row.findings)) for row in report.results]
    text = " ".join(render_terminal(replace(report, results=tuple(rows)), 120, False).split())
    assert "a call takes 30.0 ns, about as long as one that does nothing" in text
