"""The tables of modes and of shapes in every format, each with one recommendation."""

from __future__ import annotations

from perfci.report.exporters.markdown import render as render_markdown
from tests.report.case_table_reports import HELPS, mode_comparison
from tests.report.rendered import with_markdown_it


def test_the_comment_folds_what_changed() -> None:
    text = render_markdown(mode_comparison())
    fold = text.split("<details><summary>Modes that changed</summary>")[1].split("</details>")[0]
    assert "no mode helps: none is 5 % faster than eager; on base it was default" in fold
    assert "encoder" not in fold
    cells = with_markdown_it(fold).cells
    assert cells[: len(HELPS) + 2] == [
        "eager",
        "600\N{NO-BREAK SPACE}µs",
        "",
        "300\N{NO-BREAK SPACE}MiB",
        "",
        "",
    ]
