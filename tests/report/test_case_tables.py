"""The tables of modes and of shapes in every format, each with one recommendation."""

from __future__ import annotations

import json
from dataclasses import replace

from perfci.report.exporters.html import render as render_page
from perfci.report.exporters.json import render as render_json
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.reading import read_report
from perfci.report.terminal import render_terminal
from tests.report.case_table_reports import (
    CASE,
    GUARD,
    HELPS,
    alone,
    mode_comparison,
    mode_rows,
    mode_run,
    shape_comparison,
    shape_rows,
    shape_run,
)
from tests.report.examples import row
from tests.report.rendered import with_markdown_it


def test_a_run_prints_each_matrix_in_eighty_columns() -> None:
    lines = render_terminal(mode_run(), 80, False).splitlines()
    at = lines.index("encoder[batch=1] by mode")
    assert lines[at + 1 : at + 7] == [
        "  mode             latency  speed-up           peak     compile  cached  pays at",
        "  eager            1.2 ms                      300 MiB",
        "  default          610 µs   1.97× (1.95…1.99)  300 MiB  12.0 s   1.5 s   20,339",
        "  reduce-overhead  600 µs   2.00× (1.98…2.02)  300 MiB  12.0 s   1.5 s   20,000",
        "  max-autotune     590 µs   2.03× (2.01…2.06)  300 MiB  12.0 s   1.5 s   19,673",
        "  use default: 1.97× as fast as eager, and pays for its compile after 20,339",
    ]
    assert "  no mode helps: none is 5 % faster than eager" in lines


def test_a_comparison_prints_what_changed_and_all_with_v() -> None:
    text = render_terminal(mode_comparison(), 120, False)
    assert "decoder by mode" in text
    assert "encoder[batch=1] by mode" not in text
    assert "encoder[batch=1] by mode" in render_terminal(
        mode_comparison(), 120, False, verbose=True
    )


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


def test_a_comment_of_what_did_not_change_has_no_modes() -> None:
    same = alone(tuple(mode_rows(HELPS)))
    assert "<details><summary>Modes</summary>" in render_markdown(same)
    assert "Modes" not in render_markdown(alone((row("tokenise", "latency_p50", 1, 1, "new"),)))


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
