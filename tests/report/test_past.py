"""The history beside what moved: a line of heights that noise doesn't turn into mountains."""

from __future__ import annotations

from dataclasses import replace

from perfci.model.report import Past
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.rows import sparkline
from tests.report.examples import rich_report
from tests.report.rendered import with_markdown_it


def test_a_row_that_moved_shows_its_past_and_ends_with_head() -> None:
    report = rich_report()
    moved = next(row for row in report.results if row.status == "regressed" and row.head.center)
    base = moved.base.center
    past = Past(moved.case, moved.metric, (base, base, base))
    cells = with_markdown_it(render_markdown(replace(report, past=(past,)))).cells
    (cell,) = [cell for cell in cells if "until now" in cell]
    line = cell.rpartition("\N{NO-BREAK SPACE}")[2].split()[-1]
    assert line == sparkline([base, base, base, moved.head.center])
    assert len(line) == 4


def test_without_a_history_nothing_is_said_of_it() -> None:
    assert "until now" not in render_markdown(rich_report())
