"""A case's why: one line open, the rest folded, nothing said twice."""

from __future__ import annotations

from dataclasses import replace

from perfci.model.report import Explanation
from perfci.report.exporters.json import render as render_json
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.reading import read_report
from perfci.report.terminal import render_terminal
from tests.report.examples import EAGER, rendered, rich_report, why_of

OPERATOR, LINE = "aten::copy_", "lib/encoder.py"
COPIES, SLOWER = why_of(EAGER).differences
WHY = replace(
    why_of(EAGER),
    differences=(
        replace(COPIES, arguments={**COPIES.arguments, "operator": OPERATOR}, file=LINE, line=41),
        replace(SLOWER, arguments={**SLOWER.arguments, "operator": OPERATOR}),
    ),
    untold={"memory": "a call takes 12 s"},
)
AT_THE_LINE = Explanation(EAGER, "latency_p50", "graph_break", "call to print()", LINE, 41)
ELSEWHERE = Explanation(EAGER, "cold_start", "slow_import", "import yaml: 0 ns → 12.1 ms")
REPORT = rich_report(why=(WHY,), explanations=(AT_THE_LINE, ELSEWHERE))


def test_a_case_that_could_not_be_looked_into_says_why_not_on_the_terminal() -> None:
    silent = replace(WHY, differences=(), hints=())
    shown = rendered(replace(REPORT, why=(silent,)), "terminal")
    assert f"{WHY.case}: unavailable from memory: a call takes 12 s" in " ".join(shown.split())
    assert "not told by" not in rendered(REPORT, "terminal")


def test_a_case_in_which_nothing_differs_says_so_on_the_terminal() -> None:
    silent = replace(WHY, differences=(), hints=(), untold={})
    shown = rendered(replace(REPORT, why=(silent,), explanations=()), "terminal")
    assert f"{WHY.case}: nothing that differs inside explains it" in " ".join(shown.split())
    explained = rendered(replace(REPORT, why=(silent,)), "terminal")
    assert "nothing that differs inside" not in explained


def test_the_comment_has_one_line_and_folds_the_rest() -> None:
    text = render_markdown(REPORT)
    above, _, folded = text.partition("<summary>All else")
    assert "1 → 13 calls, +341 µs <code>lib/encoder.py:41</code> · " in above
    assert "takes 100 µs → 200 µs" not in above
    assert "takes 100 µs → 200 µs" in folded
    assert "import yaml" in folded
    assert "unavailable from memory: a call takes 12 s" in folded
    assert "2 more that differ inside" not in text  # of one case
    assert "1 more that differ inside" in text


def test_what_a_difference_says_of_a_line_is_not_said_again() -> None:
    for form in ("markdown", "terminal", "html"):
        assert "call to print" not in rendered(REPORT, form), form
    assert "call to print" in rendered(replace(REPORT, why=()), "markdown")


def test_a_terminal_has_the_rest_where_everything_is_asked_for() -> None:
    said = render_terminal(REPORT, 160, color=False)
    assert "aten::copy_ 1 → 13 calls, +341 µs, lib/encoder.py:41" in said
    assert "import yaml" not in said
    assert "import yaml" in render_terminal(REPORT, 160, color=False, verbose=True)


def test_the_page_has_all_of_it_at_the_row() -> None:
    page = rendered(REPORT, "html")
    assert "1 → 13 calls, +341 µs" in page
    assert "import yaml" in page


def test_a_file_has_the_words_beside_the_codes_and_is_read_back() -> None:
    text = render_json(REPORT)
    assert '"text": "`aten::copy_` 1 → 13 calls, +341 µs"' in text
    assert read_report(text) == REPORT


def test_each_metric_that_moved_has_an_open_line_of_its_own() -> None:
    grew = why_of(EAGER).differences[0]
    grew = replace(grew, metric="peak_host_memory", seconds=0.0, bytes=9e6, line=77)
    slower, *others = REPORT.results
    larger = replace(slower, metric="host_memory_over_setup", unit="bytes")
    why = replace(WHY, differences=(*WHY.differences, grew))
    both = replace(REPORT, why=(why,), results=(slower, larger, *others))
    assert (slower.case, slower.status) == (EAGER, "regressed")
    above, _, folded = render_markdown(both).partition("<summary>All else")
    assert "encoder.py:41" in above
    assert ":77" in above
    assert ":77" not in folded
    assert ":77" in rendered(both, "html")
    assert (
        ":77"
        not in render_markdown(replace(both, results=(slower, *others))).partition(
            "<summary>All else"
        )[0]
    )


def test_a_reason_says_its_share_of_the_latencys_change_where_that_can_be() -> None:
    lead = replace(WHY.differences[0], seconds=60e-6)
    case = replace(WHY, differences=(lead,))
    (row,) = (r for r in REPORT.results if (r.case, r.metric) == (EAGER, "latency_p50"))
    assert row.head
    assert row.base
    share = round(100 * 60e-6 / (row.head.center - row.base.center))
    text = rendered(replace(REPORT, why=(case,)), "terminal")
    assert f"({share} % of the change)" in " ".join(text.split())
    many = replace(case, differences=(replace(lead, seconds=1.0),))
    assert "of the change)" not in rendered(replace(REPORT, why=(many,)), "terminal")


def test_a_page_has_code_where_a_sentence_has_backticks() -> None:
    page = rendered(REPORT, "html").partition('<script type="application/json"')
    assert "<code>aten::copy_</code> 1 → 13 calls" in page[0]
    assert "`" not in page[0].partition("<body")[2]
