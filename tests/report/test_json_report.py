"""The report file that scripts read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from perfci.errors import DamagedFile
from perfci.model.codec import CodecError
from perfci.model.report import Estimate
from perfci.report.exporters.json import render as render_json
from perfci.report.reading import read_report
from perfci.stats.t_tests import t_quantile, two_sided_p
from tests.report.examples import (
    EAGER,
    alone_report,
    hostile_report,
    passing_report,
    rich_report,
    row,
)


def test_the_file_is_as_it_was(golden: Callable[[str, str], None]) -> None:
    golden("report.json", render_json(rich_report()))


def test_a_row_of_two_commits_has_what_measures_it_again() -> None:
    report = rich_report()
    assert {one["replay"] for one in json.loads(render_json(report))["results"]} == {""}
    commits = replace(report, head=replace(report.head, dirty=False))
    first = json.loads(render_json(commits))["results"][0]
    line = f"perfci compare {'a' * 40} {'b' * 40} -k '{first['case']}'"
    assert (first["replay"], first["cause"]) == (line, "code")


@pytest.mark.parametrize("report", [rich_report(), alone_report(), hostile_report("a\n\x00|é")])
def test_what_is_written_is_read_back(report: Any) -> None:
    assert read_report(render_json(report)) == report


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_never_written(number: float) -> None:
    broken = replace(rich_report(), results=(row(EAGER, "latency_p50", 1, 1, "new", p=number),))
    with pytest.raises(CodecError, match=r"results\[0\]\.p"):
        render_json(broken)


def test_an_undecodable_name_does_not_cost_the_report() -> None:
    assert read_report(render_json(hostile_report("a\udc80b"))).notes == ("a\\udc80b",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON: Input data was truncated"),
        ("[]", "names no schema"),
        ("{}", "names no schema"),
        ('{"schema": "perfci.report/2"}', "perfci.report/2"),
        ('{"schema": "perfci.report/1"}', "missing required field"),
        (render_json(rich_report())[:-20], "not JSON"),
        (render_json(rich_report()).replace('"rounds": 42', '"rounds": NaN'), "not JSON"),
        (render_json(rich_report()).replace('"rounds": 42', '"rounds": "42"'), "rounds"),
        (render_json(rich_report()).replace('"gate":', '"grate":'), "grate"),
        (
            render_json(rich_report()).replace('"dirty": true', '"dirty": true, "x": 1'),
            r"`x` - at `\$\.head`",
        ),
        ("[" * 100_000, "names no schema"),
    ],
)
def test_a_damaged_file_is_named_and_told_of(text: str, said: str) -> None:
    with pytest.raises(DamagedFile, match=said) as caught:
        read_report(text, "old.json")
    assert "old.json" in caught.value.message
    assert caught.value.advice


@pytest.mark.parametrize("report", [rich_report(), alone_report(), hostile_report("a\n\x00|é")])
def test_writing_what_was_read_gives_the_same_bytes(report: Any) -> None:
    whole = replace(
        report, results=tuple(replace(one, df=one.df and int(one.df)) for one in report.results)
    )
    text = render_json(whole)
    assert render_json(read_report(text)) == text


def test_a_metric_below_zero_has_a_ratio_below_zero() -> None:
    margin = replace(
        row(EAGER, "latency_p50", 2.0, -1.0, "inconclusive", ratio_lo=-0.6, ratio_hi=-0.4),
        metric="margin",
        p=two_sided_p(1.5 / 0.1 * t_quantile(0.975, 5.0), 5.0),
        head=Estimate(-1.0, -1.1, -0.9, 6, 6),
    )
    report = replace(passing_report(), results=(margin,))
    assert read_report(render_json(report)) == report
