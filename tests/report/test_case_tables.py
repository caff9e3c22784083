"""The tables of modes and of shapes in every format, each with one recommendation."""

from __future__ import annotations

from dataclasses import replace

from perfci.report.exporters.html import render as render_page
from perfci.report.exporters.markdown import render as render_markdown
from tests.report.case_table_reports import (
    HELPS,
    mode_comparison,
    shape_comparison,
    shape_rows,
)
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


FOLD = "<details><summary>Shapes that changed</summary>"


def test_the_comment_folds_the_shapes_that_changed() -> None:
    text = render_markdown(shape_comparison(slower=1.5))
    fold = text.split(FOLD)[1].split("</details>")[0]
    assert "may spare compiling 32x128 again" in fold
    assert "32x128" in fold


def test_a_guard_of_a_stranger_is_text_everywhere() -> None:
    evil = "<img src=x onerror=alert(1)> @octocat [a](http://e.vil)"
    rows = []
    for one in shape_rows(slower=1.5):
        guards = [
            replace(each, arguments={"guard": evil})
            for each in one.findings
            if each.code == "guard-failed"
        ]
        rows.append(replace(one, findings=tuple(guards)) if guards else one)
    report = replace(shape_comparison(), results=tuple(rows))
    assert "<img" not in render_page(report)
    assert "&lt;img src=x" in render_page(report)
    fold = render_markdown(report).split(FOLD)[1].split("</details>")[0]
    assert "<img" not in fold
    assert "@octocat" not in fold.replace("@<!-- -->", "")
