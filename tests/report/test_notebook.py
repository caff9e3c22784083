"""A report in a notebook: its line, its table and its plot."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from perfci.errors import UsageError
from tests.lacking import needed
from tests.report.examples import rich_report


def test_a_notebook_shows_a_table_in_which_names_are_no_markup() -> None:
    report = rich_report()
    report = replace(report, results=(replace(report.regressions[0], case="<script>"),))
    html = report._repr_html_()
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert "<td>regressed</td>" in html


def test_a_plot_without_matplotlib_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match="pip install matplotlib"):
        rich_report().plot()
    with pytest.raises(UsageError, match="no case has a change of nonsense"):
        rich_report().plot("nonsense")


def test_a_plot_has_a_row_for_each_case_that_has_a_change() -> None:
    needed("matplotlib").use("agg")
    report = rich_report()
    axes = report.plot()
    changed = [row for row in report.results if row.metric == "latency_p50" and row.ratio]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [row.case for row in reversed(changed)]
    assert "latency_p50" in axes.get_xlabel()
    assert report.plot("cold_start", axes=axes) is axes
