"""The tables of modes and of shapes in every format, each with one recommendation."""

from __future__ import annotations

import json
from dataclasses import replace

from perfci.report.exporters.html import render as render_page
from perfci.report.exporters.json import render as render_json
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.reading import read_report
from tests.report.case_table_reports import (
    GUARD,
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


def test_the_report_has_the_matrix_and_what_a_file_says_of_it_is_not_believed() -> None:
    text = render_json(mode_comparison())
    plain = json.loads(text)
    encoder, decoder = plain["modes"]
    assert (encoder["advice"], encoder["best"], encoder["moved"]) == ("use", "default", [])
    assert (decoder["advice"], decoder["best"], decoder["base_best"]) == (
        "none",
        "eager",
        "default",
    )
    assert [one["mode"] for one in encoder["rows"]] == list(HELPS)
    decoder["best"] = "max-autotune"
    assert render_json(read_report(json.dumps(plain))) == text


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


def test_the_report_has_the_shapes_and_what_a_file_says_of_them_is_not_believed() -> None:
    text = render_json(shape_comparison(slower=1.5, compiled=3))
    plain = json.loads(text)
    (table,) = plain["shapes"]
    assert [one["shape"] for one in table["rows"]] == ["1x128", "8x128", "32x128", "128x128"]
    assert (table["hit_rate"], table["base_hit_rate"]) == (0.25, 0.5)
    assert table["moved"] == ["32x128"]
    assert table["suggestion"]["code"] == "spare-dynamic"
    assert table["rows"][2]["guard"] == GUARD
    table["hit_rate"] = 1.0
    assert render_json(read_report(json.dumps(plain))) == text
