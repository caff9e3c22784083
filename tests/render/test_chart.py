"""The chart of the worst regressions."""

from __future__ import annotations

import re
from dataclasses import replace

from perfci.model.report import Comparison
from perfci.render.chart import chart
from perfci.render.markdown import render_markdown
from tests.render.examples import EAGER, rich_report, row

FORM = re.compile(
    r"```mermaid\n"
    r"xychart-beta horizontal\n"
    r'    title "[A-Za-z0-9 ,%()]+"\n'
    r'    x-axis \["[A-Za-z0-9_.,= -]{1,30}"(?:, "[A-Za-z0-9_.,= -]{1,30}"){1,7}\]\n'
    r'    y-axis "%" 0 --> \d+\.\d\n'
    r"    bar \[\d+\.\d(?:, \d+\.\d){1,7}\]\n"
    r"```"
)


def slower(number: int, by: float) -> Comparison:
    return row(f"case{number}[batch=1]", "latency_p50", 1.0, 1.0 + by, "regressed")


def test_fewer_than_two_regressions_make_no_chart() -> None:
    assert chart(()) == ""
    assert chart((slower(1, 0.2), row("a", "latency_p50", 1.0, 0.5, "improved"))) == ""
    counts = [row(f"case{number}", "graph_breaks", 0, 1, "regressed") for number in (1, 2)]
    assert chart(counts) == ""  # a count has no change in %


def test_a_chart_has_a_numbered_bar_for_each_of_the_worst_eight() -> None:
    drawn = chart([slower(number, 0.5 - number / 100) for number in range(12)])
    assert FORM.fullmatch(drawn)
    assert "bar [50.0, 49.0, 48.0, 47.0, 46.0, 45.0, 44.0, 43.0]" in drawn
    assert '["1 case0 batch=1 latency_p50", "2 case1' in drawn


def test_less_throughput_is_a_bar_too() -> None:
    less = row("a", "throughput", 100.0, 80.0, "regressed")
    assert "bar [20.0, 10.0]" in chart((less, slower(2, 0.1)))


def test_a_bar_out_of_all_proportion_is_ended_and_that_is_said() -> None:
    drawn = chart((replace(slower(1, 0.2), ratio=1e308), slower(2, 0.1)))
    assert FORM.fullmatch(drawn)
    assert "(bars end at 1000)" in drawn
    assert "bar [1000.0, 10.0]" in drawn


def test_a_label_keeps_number_and_metric_of_a_long_name() -> None:
    long = row("encoder_with_a_very_long_name[batch=1]", "latency_p50", 1.0, 1.5, "regressed")
    labels = re.findall(r'"(\d [^"]+)"', chart((long, slower(2, 0.1))))
    assert labels[0].startswith("1 encoder_with")
    assert labels[0].endswith(" latency_p50")
    assert len(labels[0]) <= 30


def test_the_comment_holds_the_chart_folded() -> None:
    results = (
        row(EAGER, "latency_p50", 1.0, 1.3, "regressed"),
        row(EAGER, "cold_start", 1.0, 1.2, "regressed"),
    )
    text = render_markdown(rich_report(results=results))
    assert FORM.search(text)
    assert "<details><summary>Chart</summary>\n\n```mermaid\n" in text
    assert "mermaid" not in render_markdown(rich_report(results=results[:1]))
