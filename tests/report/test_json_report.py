"""The report file that scripts read."""

from __future__ import annotations

import json
import math
import re
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

SIDE = {"rev", "sha", "python"}
ESTIMATE = {"center", "lo", "hi", "workers", "samples", "values", "quantiles", "first_calls"}
RESULT = (
    "case", "metric", "unit", "status", "gate", "method", "base", "head", "ratio", "ratio_lo",
    "ratio_hi", "threshold", "p", "p_adjusted", "cohens_d", "detectable", "warnings",
)  # fmt: skip
TOP = (
    "schema", "perfci_version", "created_at", "base", "head", "environment", "verdict", "timing",
    "results", "failures",
)  # fmt: skip


def test_the_file_is_as_it_was(golden: Callable[[str, str], None]) -> None:
    golden("report.json", render_json(rich_report()))


def test_the_field_names_of_the_design_are_all_there_in_order() -> None:
    plain = json.loads(render_json(rich_report()))
    assert tuple(name for name in plain if name in TOP) == TOP
    assert plain["schema"] == "perfci.report/1"
    assert plain["base"].keys() >= SIDE
    assert plain["head"].keys() >= SIDE
    assert plain["environment"].keys() == {"key", "facts"}
    assert plain["verdict"].keys() == {"status", "reasons", "findings"}
    assert plain["timing"].keys() == {"wall_s", "measured_s", "rounds"}
    result = plain["results"][0]
    assert tuple(name for name in result if name in RESULT) == RESULT
    assert result["base"].keys() == ESTIMATE
    assert result["head"].keys() == ESTIMATE
    assert plain["failures"][0].keys() >= {"case", "side", "stage", "kind", "message"}


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


def _edited(*path: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    def edit(plain: Any) -> None:
        for step in path[:-1]:
            plain = plain[step]
        plain[path[-1]] = to

    return edit


def _repeat(plain: dict[str, Any]) -> None:
    plain["results"].append(plain["results"][0])


def _calm(plain: dict[str, Any]) -> None:
    for one in plain["results"]:
        one["gate"] = "info"


ROW = rf"results\[0\] \({re.escape(EAGER)} latency_p50\)"
IMPOSSIBLE = {
    "negative ratio": (_edited("results", 0, "ratio", to=-1), f"{ROW}: ratio is -1"),
    "no workers": (_edited("results", 0, "head", "workers", to=-1), f"{ROW}: head.workers is -1"),
    "no samples": (_edited("results", 0, "base", "samples", to=-2), f"{ROW}: base.samples is -2"),
    "p": (_edited("results", 0, "p", to=5), f"{ROW}: p is 5, and a probability"),
    "p_adjusted": (_edited("results", 0, "p_adjusted", to=-0.1), f"{ROW}: p_adjusted is -0.1"),
    "welch_p": (_edited("results", 0, "welch_p", to=1.5), f"{ROW}: welch_p is 1.5"),
    "threshold": (_edited("results", 0, "threshold", to=-3), f"{ROW}: threshold is -3"),
    "detectable": (_edited("results", 0, "detectable", to=-3), f"{ROW}: detectable is -3"),
    "df": (_edited("results", 0, "df", to=-1), f"{ROW}: df is -1"),
    "interval": (_edited("results", 0, "ratio_lo", to=9), f"{ROW}: ratio_lo is 9, above ratio"),
    "side": (_edited("results", 0, "base", "hi", to=0), f"{ROW}: base.center is .*above base.hi"),
    "direction": (_edited("results", 0, "direction", to="up"), f"{ROW}: direction is 'up'"),
    "time": (_edited("timing", "wall_s", to=-1), r"timing\.wall_s is -1"),
    "rounds": (_edited("timing", "rounds", to=-1), r"timing\.rounds is -1"),
    "date": (_edited("created_at", to="yesterday"), "created_at is 'yesterday'"),
    "line": (_edited("explanations", 0, "line", to=-4), r"explanations\[0\]\.line is -4"),
    "injected": (_edited("injected", to={"latency": -0.1}), r"injected\.latency is -0\.1"),
    "duration": (_edited("durations", to={"a": -1.0}), r"durations\.a is -1"),
    "shard": (_edited("shard", to="2/4 <img>"), "shard is '2/4 <img>'"),
    "repeated": (_repeat, r"results\[17\] .* stands there twice, first as results\[0\]"),
    "passed": (_edited("verdict", "status", to="pass"), f"`pass`, and {re.escape(EAGER)}"),
    "failed": (_calm, "`fail`, and no row that gates regressed"),
}


@pytest.mark.parametrize("how", IMPOSSIBLE)
def test_what_no_measurement_gives_is_refused_and_named(how: str) -> None:
    edit, said = IMPOSSIBLE[how]
    plain = json.loads(render_json(rich_report()))
    edit(plain)
    with pytest.raises(DamagedFile, match=said):
        read_report(json.dumps(plain), "edited.json")


def test_a_metric_below_zero_has_a_ratio_below_zero() -> None:
    margin = replace(
        row(EAGER, "latency_p50", 2.0, -1.0, "inconclusive", ratio_lo=-0.6, ratio_hi=-0.4),
        metric="margin",
        p=two_sided_p(1.5 / 0.1 * t_quantile(0.975, 5.0), 5.0),
        head=Estimate(-1.0, -1.1, -0.9, 6, 6),
    )
    report = replace(passing_report(), results=(margin,))
    assert read_report(render_json(report)) == report
