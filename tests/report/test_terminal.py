"""The report at a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.cells import cell_len

from perfci.model.finding import Finding
from perfci.model.report import Report
from perfci.report.terminal import render_terminal
from tests.report.examples import EAGER, alone_report, hostile_report, passing_report, rich_report

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
    assert "not measured: device_time_p50, energy (no CUDA device)" in text


def test_verbose_says_what_to_blame_and_what_measures_a_case_again() -> None:
    report = rich_report()
    commits = replace(report, head=replace(report.head, dirty=False))
    text = render_terminal(commits, 400, False, verbose=True)
    again = f"    again: perfci compare {'a' * 40} {'b' * 40} -k 'encoder[batch=1,mode=eager]'"
    assert again.strip() in text
    failed = {one.case for one in report.failures}
    assert text.count("again: ") == len({one.case for one in report.results} - failed)
    assert set(re.findall("blame: ([a-z]+)", text)) == {"code", "noise", "method"}
    assert "again: " not in render_terminal(report, 400, False, verbose=True)  # a working tree
    assert "blame" not in render_terminal(commits, 400, False)


def test_an_undecided_metric_says_what_it_would_have_taken_if_that_is_too_much() -> None:
    report = rich_report()
    rows = [
        replace(row, detectable=0.25) if row.metric == "cold_start" else row
        for row in report.results
    ]
    text = render_terminal(replace(report, results=tuple(rows)), 120, False)
    assert "not decided: cold_start (only a change of 25 % would show)" in text
    assert "would show" not in render_terminal(report, 120, False)


def test_a_real_change_below_the_threshold_is_called_so_without_verbose() -> None:
    report = passing_report()
    small = Finding("below-threshold", {"threshold": 0.05, "unit": ""})
    slower = replace(report.results[0], findings=(small,))
    text = render_terminal(replace(report, results=(slower,)), 120, False)
    assert "unchanged  latency_p50" in text
    assert "significant, but below the threshold of 5 %" in text
    assert "significant" not in render_terminal(report, 120, False)


def test_verbose_shows_the_statistics_of_what_was_tested() -> None:
    report = rich_report()
    assert "6 pairs; paired t; p 0.059, adjusted 0.47; df 5; d 2.50 (large)" in render_terminal(
        report, 120, False, verbose=True
    )
    assert "paired t" not in render_terminal(report, 120, False)


def test_the_verdict_is_at_the_end_where_the_eye_is() -> None:
    lines = render_terminal(rich_report(), 120, False).rstrip().splitlines()
    assert any(line.startswith("perfci: fail") for line in lines[-4:])


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_nothing_is_wider_than_the_terminal_and_nothing_is_lost(width: int, verbose: bool) -> None:
    text = render_terminal(rich_report(), width, False, verbose=verbose)
    assert max(map(cell_len, text.splitlines())) <= width
    for needed in (EAGER, "1.23 ms → 1.31 ms", "+6.5 %", "(+5.4…+7.6)", "confirmed"):
        assert needed in text
    assert "…(" not in text


@pytest.mark.parametrize("report", [rich_report(), alone_report(), passing_report()])
@pytest.mark.parametrize("verbose", [False, True])
def test_a_narrow_terminal_breaks_no_number_from_its_unit(report: Report, verbose: bool) -> None:
    lines = render_terminal(report, 40, False, verbose=verbose).splitlines()
    assert max(map(cell_len, lines)) <= 40
    assert [line for line in lines if line != line.rstrip()] == []
    assert [line for line in lines if re.match(r"\s*(?:[nµm]?s|[KMG]iB|%)(?:\W|$)", line)] == []


def test_without_colour_there_is_no_escape_sequence() -> None:
    assert "\x1b" not in render_terminal(hostile_report("\x1b[31mred\x1b[0m"), 80, False)
    assert "\x1b[" in render_terminal(rich_report(), 80, True)


def test_the_surroundings_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = render_terminal(rich_report(), 80, True)
    for name, value in (("NO_COLOR", "1"), ("COLUMNS", "200"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
    assert render_terminal(rich_report(), 80, True) == plain


def test_rich_markup_in_a_name_is_text() -> None:
    assert "[bold]x[/bold]" in render_terminal(hostile_report("[bold]x[/bold]"), 80, False)


def test_what_moved_stands_before_what_did_not() -> None:
    text = render_terminal(rich_report(), 80, False)
    assert text.index("tokenise") < text.index("decoder[length=128]")
