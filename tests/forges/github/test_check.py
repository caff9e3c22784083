"""What the check says of a verdict."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import Any

import pytest

from perfci.forges.base import (
    CheckIdentity,
    Posting,
    check_content,
    conclusion,
    fitting,
    limited_by,
    read_identity,
    verdict_title,
)
from perfci.model.finding import stated
from perfci.model.report import Explanation, Verdict
from tests.forges.github.conftest import report_of
from tests.report.examples import hostile_report, passing_report
from tests.report.hostile import NAMES


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
    assert check_content([unsure], "body").conclusion == "neutral"
    content = check_content([unsure], "body", strict=True)
    assert content.conclusion == "failure"
    assert conclusion([passing_report()], strict=True) == "success"


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


@pytest.mark.parametrize("character", ["x", "é", "😀"])
def test_a_summary_fits_in_characters_and_in_bytes(character: str) -> None:
    body = f"head\n\n{(character * 99 + chr(10)) * 900}"
    text = fitting(body)
    assert 20_000 < len(text.encode()) <= 65_535
    assert text.startswith("head\n")
    assert "Cut to fit" in text


def test_the_identity_is_the_same_for_the_same_posting_only() -> None:
    report = report_of()
    one = check_content([report], "body", posting=Posting(7, "main", "12-1")).identity
    assert one == check_content([report], "body", posting=Posting(7, "main", "12-1")).identity
    assert one != check_content([report], "body", posting=Posting(7, "main", "12-2")).identity
    assert one != check_content([report], "other", posting=Posting(7, "main", "12-1")).identity


@pytest.mark.parametrize("name", NAMES)
def test_a_strangers_text_shows_as_it_is_in_titles_and_annotations(name: str) -> None:
    explained = Explanation(name, name, name, name, "lib/a.py", 3)
    report = replace(hostile_report(name), explanations=(explained,))
    content = check_content([report], "body")
    said = [content.title]
    assert content.annotations
    for line in content.annotations:
        assert not line.path.startswith("/")
        said += [line.path, line.title, *line.message.split("\n", 1)]
    for text in said:
        assert not {unicodedata.category(one) for one in text} & {"Cc", "Cf", "Zl", "Zp", "Cs"}
        assert len(text) <= 1500


def test_a_check_names_its_pull_request_where_it_is_seen_and_in_its_external_id() -> None:
    content = check_content([passing_report()], "body", posting=Posting(7, "main", "12-1"))
    assert content.title == "pass: no regression in 2 cases (#7 into main)"
    assert read_identity(content.identity) == CheckIdentity(7, "success")
    long = check_content([passing_report()], "body", posting=Posting(7, "x" * 300, "12-1"))
    assert len(long.title) <= 200
    for other in (None, "", "ca395085-040a-526b-2ce8-bdc85f692774", f"{content.identity}x"):
        assert read_identity(other) is None


@pytest.mark.parametrize(
    ("others", "strangers", "expected", "said"),
    [
        ([], False, "success", "pass: "),
        ([(8, "neutral")], False, "neutral", "#8 has the same head: neutral; pass: "),
        ([(8, "neutral"), (9, "failure")], False, "failure", "#8 has the same head: neutral; #9 "),
        ([], True, "failure", "a job called `perfci` is on this commit, and is no verdict; pass: "),
    ],
)
def test_a_pass_stands_beside_no_worse_check_and_no_strangers(
    others: list[tuple[int, str]], strangers: bool, expected: str, said: str
) -> None:
    shown = limited_by(check_content([passing_report()], "body"), others, unknown=strangers)
    assert shown.conclusion == expected
    assert shown.title.startswith(said)
    assert len(shown.title) <= 200
