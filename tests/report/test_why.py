"""A case's why: one line open, the rest folded, nothing said twice."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from perfci.finding import Explanation
from perfci.report.exporters import TERMINAL
from perfci.report.exporters.json import render as render_json
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.reading import read_report
from perfci.report.rows import metric_words
from tests.report.examples import EAGER, rendered, rich_report, row, why_of

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


def test_the_comment_has_one_line_and_folds_the_rest() -> None:
    text = render_markdown(REPORT)
    above, _, folded = text.partition("<summary>All else")
    table, _, reasons = above.partition("**Why**")
    assert "1 → 13 calls" not in table, "reasons stand in one place"
    assert "1 → 13 calls, +341 µs, <code>lib/encoder.py:41</code>\n" in reasons
    assert "takes 100 µs → 200 µs" not in above
    assert "takes 100 µs → 200 µs" in folded
    assert "import yaml" in folded
    assert "unavailable from memory: a call takes 12 s" in folded
    assert "1 more that differ inside" in text  # of one case


def test_the_reasons_of_what_the_table_shows_go_first() -> None:
    others = [Explanation(f"other{number}", "cold_start", "k", "slower") for number in range(20)]
    text = render_markdown(replace(REPORT, explanations=(*others, AT_THE_LINE)))
    open_reasons = text.partition("**Why**")[2].partition("\n\n**")[0].strip().splitlines()
    assert len(open_reasons) == 8
    assert "encoder" in open_reasons[0]
    folded = text.partition("**More reasons why**")[2]
    assert len(re.findall(r"<code>other\d+</code>", folded)) == 20 - 7


@pytest.mark.parametrize("metric", ["captured_calls", "generated_kernels", "graphs"])
@pytest.mark.parametrize("format_name", [TERMINAL, "markdown", "html"])
def test_exact_numbers_that_rose_go_first(metric: str, format_name: str) -> None:
    more, fewer = (
        row(EAGER, metric, before, after, status)
        for before, after, status in ((94, 188, "regressed"), (94, 47, "improved"))
    )
    report = replace(REPORT, results=(*REPORT.results, more))
    said = unescape(re.sub(r"<[^>]*>|`", "", rendered(report, format_name))).replace("\u200b", "")
    assert f"{metric_words(metric)} 94 → 188; aten::copy_ 1 → 13 calls" in " ".join(said.split())
    report = replace(REPORT, results=(*REPORT.results, fewer))
    assert "94 → 47; " not in rendered(report, format_name)


def test_the_page_has_all_of_it_at_the_row() -> None:
    page = rendered(REPORT, "html")
    assert "1 → 13 calls, +341 µs" in page
    assert "import yaml" in page


def test_a_file_has_the_words_beside_the_codes_and_is_read_back() -> None:
    text = render_json(REPORT)
    assert '"text": "`aten::copy_` 1 → 13 calls, +341 µs"' in text
    assert read_report(text) == REPORT
