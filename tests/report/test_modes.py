"""The mode matrix in every format: its table, and one recommendation."""

from __future__ import annotations

import json

from perfci.report.exporters.json import render as render_json
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.reading import read_report
from perfci.report.terminal import render_terminal
from tests.report.examples import row
from tests.report.mode_reports import HELPS, alone, mode_comparison, mode_rows, mode_run
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
