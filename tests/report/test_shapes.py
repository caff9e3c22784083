"""The table of shapes in every format: latencies, compiles with their guard, one suggestion."""

from __future__ import annotations

import json
from dataclasses import replace

from perfci.report.exporters.html import render as render_page
from perfci.report.exporters.json import render as render_json
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.reading import read_report
from perfci.report.terminal import render_terminal
from tests.report.mode_reports import alone
from tests.report.shape_reports import CASE, GUARD, shape_comparison, shape_rows, shape_run

SUGGESTED = "compile_options={'dynamic': True} may spare compiling 32x128 again"
FOLD = "<details><summary>Shapes that changed</summary>"


def test_a_run_prints_the_shapes_by_size_with_their_guard() -> None:
    lines = render_terminal(shape_run(), 160, False).splitlines()
    at = lines.index(f"{CASE} by shape")
    assert [one.split() for one in lines[at + 1 : at + 6]] == [
        ["shape", "latency", "compiles", "guard", "that", "failed"],
        ["1x128", "10.0", "µs", "1"],
        ["8x128", "80.0", "µs", "1", *GUARD.split()],
        ["32x128", "320", "µs", "0"],
        ["128x128", "1.28", "ms", "0"],
    ]
    served = "  code compiled for another shape served 50 % of the shapes"
    assert lines[at + 6] == f"{served}; {SUGGESTED}"


def test_a_comparison_has_each_change_and_what_base_compiled() -> None:
    lines = render_terminal(shape_comparison(slower=1.5, compiled=3), 160, False).splitlines()
    at = lines.index(f"{CASE} by shape")
    moved = lines[at + 4]
    assert moved.startswith("  32x128   480 µs")
    assert "+50.0 % (+48.5 … +51.5 %)  0 → 1" in moved
    assert moved.endswith(GUARD)
    assert "served 25 % of the shapes; on base 50 %" in lines[at + 6]


def test_what_did_not_change_is_shown_with_v_alone() -> None:
    same = shape_comparison()
    assert "by shape" not in render_terminal(same, 120, False)
    assert "by shape" in render_terminal(same, 120, False, verbose=True)
    assert FOLD not in render_markdown(same)


def test_the_comment_folds_the_shapes_that_changed() -> None:
    text = render_markdown(shape_comparison(slower=1.5))
    fold = text.split(FOLD)[1].split("</details>")[0]
    assert "may spare compiling 32x128 again" in fold
    assert "32x128" in fold


def test_nothing_is_suggested_where_nothing_helps() -> None:
    text = render_terminal(alone(tuple(shape_rows(suggestion=None))), 120, False)
    assert "served 50 % of the shapes\n" in text
    assert "may spare" not in text


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
