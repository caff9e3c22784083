"""What the check says of a verdict."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import Any

import pytest

from perfci.cli.report import exit_code
from perfci.errors import EXIT_NO_VERDICT
from perfci.finding import LOOKS_SLOWER, Explanation, Reason, stated
from perfci.forges.posting import MeasuredHead, check_content, conclusion, verdict_title
from perfci.model.report import Verdict
from perfci.report.exporters.markdown import render as render_markdown
from tests.forges.github.conftest import report_of
from tests.report.examples import hostile_report, passing_report, row
from tests.report.hostile import NAMES

PLACE = MeasuredHead("b" * 40, 7, "main")


@pytest.mark.parametrize(
    ("status", "changed", "expected"),
    [
        ("pass", {}, "success"),
        ("fail", {}, "failure"),
        ("error", {}, "failure"),
        ("inconclusive", {}, "neutral"),
    ],
)
def test_each_verdict_has_its_conclusion(
    status: Any, changed: dict[str, Any], expected: str
) -> None:
    assert conclusion([report_of(verdict=Verdict(status, (stated("why"),)), **changed)]) == expected


HALVES = [
    {"interrupted": True},
    {"shard": "2/4"},
    {"missing": ("2/4",)},
    {"command": "run", "base": None},
    {"command": "calibrate"},
    {"injected": {"latency": 0.02}},
]


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("status", ["pass", "inconclusive", "fail", "error"])
def test_half_a_measurement_fails_a_check_that_is_required(
    half: dict[str, Any], status: Any
) -> None:
    report = report_of(verdict=Verdict(status, (stated("why"),)), **half)
    assert conclusion([report]) == "failure"


def test_what_could_not_be_decided_fails_only_where_strict() -> None:
    unsure = report_of(verdict=Verdict("inconclusive", (stated("noise"),)))
    assert conclusion([unsure], strict=True) == "failure"
    assert conclusion([unsure]) == "neutral"
    assert conclusion([passing_report()], strict=True) == "success"


def test_what_looks_slower_fails_strict_or_not() -> None:
    slower = Reason(LOOKS_SLOWER, "work", "latency_p50", {"ratio": 1.745, "lo": 0.9, "hi": 3.1})
    rows = (row("work", "latency_p50", 1e-3, 1.745e-3, "inconclusive"),)
    report = report_of(results=rows, verdict=Verdict("inconclusive", (slower, stated("noise"))))
    assert conclusion([report]) == "failure"
    assert exit_code(report, strict=False) == EXIT_NO_VERDICT
    said = "looks slower, not decided: work latency_p50 +74.5 %"
    assert verdict_title([report]) == f"inconclusive: {said}"
    title = render_markdown(report).splitlines()[1]
    assert "looks slower, not decided" in title


@pytest.mark.parametrize(
    ("half", "said"),
    [
        ({"command": "run"}, "`run` compares nothing: pass: "),
        ({"command": "x\u202e"}, "`x` compares nothing: pass: "),
        ({"injected": {"latency": 0.02}}, "slowed down on purpose: pass: "),
    ],
)
def test_a_title_says_why_a_pass_is_none(half: dict[str, Any], said: str) -> None:
    assert verdict_title([report_of(verdict=Verdict("pass", ()), **half)]).startswith(said)


def test_the_worst_of_several_environments_counts() -> None:
    reports = [passing_report(), report_of(verdict=Verdict("inconclusive", (stated("noise"),)))]
    assert conclusion(reports) == "neutral"
    assert verdict_title(reports) == "inconclusive: noise (worst of 2 environments)"
    assert conclusion([*reports, report_of()]) == "failure"


def test_a_title_is_one_line_of_plain_text() -> None:
    title = verdict_title(
        [report_of(verdict=Verdict("error", (stated("a\u202eb\n::error::c" + "x" * 900),)))]
    )
    assert title.startswith("error: ab ::error::cxxx")
    assert len(title) <= 200


def test_a_part_and_a_half_say_so_in_the_title() -> None:
    report = report_of(verdict=Verdict("pass", ()), shard="2/4", interrupted=True)
    assert verdict_title([report]).startswith("shard 2/4 only: interrupted: pass: ")


def test_the_identity_is_the_same_for_the_same_posting_only() -> None:
    def identity(body: str = "body", attempt: str = "12-1") -> str:
        return check_content([report], body, PLACE, "", attempt, strict=False).identity

    report = report_of()
    assert identity() == identity()
    assert identity() not in {identity(attempt="12-2"), identity("other")}


@pytest.mark.parametrize("name", NAMES)
def test_a_strangers_text_shows_as_it_is_in_titles_and_annotations(name: str) -> None:
    explained = Explanation(name, name, name, name, "lib/a.py", 3)
    report = replace(hostile_report(name), explanations=(explained,))
    content = check_content([report], "body", PLACE, "", "", strict=False)
    said = [content.title]
    assert content.annotations
    for line in content.annotations:
        assert not line.path.startswith("/")
        said += [line.path, line.title, *line.message.split("\n", 1)]
    for text in said:
        assert not {unicodedata.category(one) for one in text} & {"Cc", "Cf", "Zl", "Zp", "Cs"}
        assert len(text) <= 1500


def test_a_check_names_its_pull_request_where_it_is_seen() -> None:
    content = check_content([passing_report()], "body", PLACE, "", "12-1", strict=False)
    assert content.title == "pass: no regression in 2 cases (#7 into main)"
    into = replace(PLACE, base="x" * 300)
    assert len(check_content([passing_report()], "", into, "", "", strict=False).title) <= 200
