"""The webhook's message: what it says, Slack's limits, and names that stay text."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from perfci.forges.webhook import webhook_body
from perfci.trend import Change, SeriesKey, Trend
from tests.forges.trends import CASE, ENVIRONMENT, KEY, SHAS, change, event, many, trend
from tests.report.hostile import NAMES


def message(told: Trend, **options: Any) -> dict[str, Any]:
    body = webhook_body(told, **options)
    assert body is not None
    return json.loads(body)


def sections(told: Trend, **options: Any) -> list[str]:
    blocks = message(told, **options)["blocks"]
    return [block["text"]["text"] for block in blocks if block["type"] == "section"]


def of(*changes: Change) -> Trend:
    return trend(changes=changes)


def test_a_new_regression_says_what_by_how_much_and_between_which_commits() -> None:
    told = message(trend())
    assert told["blocks"][0]["text"]["text"] == "perfci: 1 new regression"
    assert told["text"] == (f"perfci: 1 new regression: :red_circle: worse: `{CASE}` `latency_p50`")
    (section,) = sections(trend())
    range_ = f"between `{SHAS[1][:10]}` and `{SHAS[2][:10]}`"
    assert section.splitlines() == [
        f":red_circle: worse: `{CASE}` `latency_p50`",
        f"*+25.0 % (+20.0 … +30.0 %)*, q &lt; 0.001, {range_}",
        f"on `{ENVIRONMENT}`",
    ]


def test_a_range_that_is_wider_with_confidence_is_told() -> None:
    (section,) = sections(of(change(commits_within=(SHAS[0], SHAS[3]))))
    told = f"(with 95 % confidence between `{SHAS[0][:10]}` and `{SHAS[3][:10]}`)"
    assert section.splitlines()[1].endswith(f"`{SHAS[2][:10]}` {told}")


def test_nothing_new_is_no_message() -> None:
    for status in ("known", "acknowledged", "fixed"):
        assert webhook_body(of(change(status=status))) is None
    assert webhook_body(of()) is None


def test_only_what_is_new_is_told_and_regressions_come_first() -> None:
    better = change("b", KEY._replace(case="faster"), worse=False, ratio=0.5)
    old = change("o", KEY._replace(case="older"), status="known")
    told = sections(of(better, old, change("w")))
    assert len(told) == 2
    assert "worse" in told[0]
    assert "faster" in told[1]
    title = message(of(better, change("w")))["blocks"][0]["text"]["text"]
    assert title == "perfci: 1 new regression and 1 new improvement"


def test_a_change_from_zero_a_ramp_and_a_changed_benchmark_are_told_as_such() -> None:
    (counts,) = sections(of(change(ratio=None, difference=2.0)))
    assert "*+2 s*" in counts
    (tenfold,) = sections(of(change(ratio=10.0, ratio_lo=9.0, ratio_hi=11.0)))
    assert "*×10 (×9 … ×11)*" in tenfold  # as the report's pages say it
    (ramp,) = sections(of(change(kind="ramp", q=0.013, benchmark_changed=True)))
    assert "q = 0.013, slowly from" in ramp
    assert "benchmark's own source changed" in ramp


def test_a_hundred_are_cut_to_what_slack_takes_and_the_rest_is_counted() -> None:
    told = message(of(*many(100)), report_url="https://ci.example/1?a=1&b=2")
    assert len(told["blocks"]) == 23
    texts = [block["text"]["text"] for block in told["blocks"]]
    assert texts[0] == "perfci: 100 new regressions"
    assert texts[-2] == "…and 80 more events."
    assert texts[-1] == "<https://ci.example/1?a=1&amp;b=2|The whole report>"


@pytest.mark.parametrize("letter", ["x", "<", "&", "@a", "://", "\u4e2d"])
def test_the_longest_names_keep_to_slacks_limits(letter: str) -> None:
    name = letter * 5000
    told = message(of(*(change(f"{n}", SeriesKey(name, name, name)) for n in range(60))))
    assert len(told["blocks"]) <= 50
    assert len(told["text"]) <= 4000
    assert len(told["blocks"][0]["text"]["text"]) <= 150
    for block in told["blocks"][1:]:
        assert 0 < len(block["text"]["text"]) <= 3000
        assert block["text"]["text"].count("`") % 2 == 0


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_neither_mention_nor_link_nor_leave_their_code_span(name: str) -> None:
    bad = name + "<!channel> <@U1> <#C1> <http://evil.example|x> @here @everyone &lt;"
    key = SeriesKey(bad, bad, bad)
    commits = {"commits": (bad, bad + "2"), "commits_within": (bad, bad + "3")}
    told = message(of(change("i", key, **commits)))
    for text in (told["text"], *(block["text"]["text"] for block in told["blocks"])):
        assert "<" not in text
        assert ">" not in text
        assert not re.search(r"&(?!amp;|lt;|gt;)", text)
        outside = re.sub(r"`[^`\n]*`", "", text)
        assert "evil" not in outside
        assert not re.search(r"@[a-z]|://|www\.|#\w", text, re.IGNORECASE)
    for block in told["blocks"][1:]:
        assert block["text"]["verbatim"] is True
        assert block["text"]["text"].count("\n") == 2
        assert block["text"]["text"].count("`") == 14  # case, metric, four commits, environment


def test_a_step_between_nights_of_one_commit_is_not_blamed_on_it() -> None:
    (section,) = sections(trend(changes=(change(commits=(SHAS[2], SHAS[2])),)))
    assert "not the code" in section
    assert "between" not in section


def test_an_event_of_many_series_is_one_section_with_its_benchmarks_and_sizes() -> None:
    some = tuple(
        change(f"{number}", KEY._replace(case=f"case{number}[n={n}]"), ratio=1.1 + number / 10)
        for number in range(5)
        for n in (1, 2)
    )
    told = trend(changes=some, events=(event(*some, kind="environment", evidence=("runner",)),))
    assert message(told)["blocks"][0]["text"]["text"] == "perfci: 1 new regression (10 series)"
    (section,) = sections(told)
    assert section.splitlines() == [
        ":red_circle: worse: `case0`, `case1` and 3 more benchmarks, 10 of 200 series",
        f"*+30.0 %, the largest +50.0 %*, between `{SHAS[1][:10]}` and `{SHAS[2][:10]}`",
        f"on `{ENVIRONMENT}`",
        "the environment, not the code: another runner measured from here on",
    ]


def test_an_event_that_was_sent_is_sent_again_only_when_most_of_its_changes_are_new() -> None:
    old = tuple(change(f"o{number}", status="known") for number in range(3))
    new = many(4)
    assert webhook_body(trend(changes=(*old, *new[:3]), events=(event(*old, *new[:3]),))) is None
    assert webhook_body(trend(changes=(*old, *new), events=(event(*old, *new),))) is not None
