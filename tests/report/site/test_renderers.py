"""Site, Markdown, JSON and terminal: what they say of the same trend."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from perfci.report.site.catalogue import release_runs
from perfci.report.site.pages import render_site, render_trend_markdown, tiles, trend_lines
from perfci.report.trend import trend_json
from perfci.trend import ChangeStatus, KnownChange, Trend, Withdrawal
from tests.report.rendered import with_cmark_gfm
from tests.report.site.histories import (
    EMPTY_HEALTH,
    GPU,
    change,
    quiet_trend,
    run,
    timeline,
    with_changes,
    year,
)
from tests.report.site.test_script import hostile


def front(trend: Trend) -> str:
    """Return the overview's HTML."""
    return dict(render_site(trend))["index.html"].decode()


@pytest.mark.parametrize(
    "render", [front, render_trend_markdown, lambda t: "\n".join(trend_lines(t))]
)
def test_when_nothing_moved_that_is_said_first(render: Callable[[Trend], str]) -> None:
    text = render(quiet_trend())
    assert "Nothing moved since the last report" in text
    assert "worse" not in re.sub(r"<script.*|<style.*", "", text.partition("All series")[0])


def test_one_change_is_named_in_the_headline() -> None:
    trend = year()
    alone = with_changes(trend, trend.changes[0])
    assert "latency_p50 of encoder[batch=1,mode=eager] got worse" in trend_lines(alone)[0]


def test_a_hash_that_is_a_command_to_a_runner_is_none_on_the_terminal() -> None:
    trend = year()
    bad = ("\n::error::a", "\n::error::b")
    change = replace(trend.changes[0], commits=bad, commits_within=bad)
    text = "\n".join(trend_lines(with_changes(trend, change)))
    assert not re.search(r"^\s*::error::", text, re.MULTILINE)
    assert "error" in text


def test_the_new_and_worst_comes_before_what_was_told() -> None:
    text = front(year())
    places = [text.index(part) for part in ("+5.2 %", "-8.6 %", "+11.0 %", "+2.1 %", "+30.0 %")]
    assert places == sorted(places)
    told = [text.index(part) for part in ("Since the last", "Still worse", "Slow drift", "Earlier")]
    assert told == sorted(told)


def test_a_report_without_news_begins_with_what_is_open() -> None:
    trend = year()
    known = [replace(change, status="known") for change in trend.changes if change.worse][:3]
    text = front(with_changes(trend, *known))
    assert "<h1>3 regressions are open, none of them new since the last report</h1>" in text
    assert "Nothing moved" not in text
    sizes = [text.index(size) for size in ("+1<", "+11.0 %", "+5.2 %")]
    assert sizes == sorted(sizes)


def test_an_older_event_with_a_new_change_is_counted_alike_in_both_sentences() -> None:
    trend = year()
    statuses: dict[int, ChangeStatus] = {0: "new", 4: "known", 6: "known"}
    changes = (
        change(trend.series[at], 352, 1.1, timelines=trend.timelines, status=status)
        for at, status in statuses.items()
    )
    text = front(with_changes(trend, *changes))
    assert "encoder[batch=1,mode=eager] got worse; 1 older regression is open" in text
    assert "2 series are still worse in 1 event" in text


def test_what_got_worse_in_a_series_that_ended_stays_open_under_its_own_heading() -> None:
    trend = year()
    ended = replace(trend.changes[0], status="known")
    gone = replace(with_changes(trend, ended), gone=frozenset({ended.series}))
    site = dict(render_site(gone))
    text = site["index.html"].decode()
    assert "1 regression is open, none of them new" in text
    assert '<h2 id="unmeasured-title">Open, but no longer measured</h2>' in text
    assert "last measured 2026-11-20" in text
    assert "Still worse</h2>" not in text
    assert b"1 regression<" in site["badge.svg"]
    assert "Open, but no longer measured:" in trend_lines(gone)
    assert "<summary>Open, but no longer measured</summary>" in render_trend_markdown(gone)
    plain = json.loads(trend_json(gone))
    assert [event["unmeasured"] for event in plain["events"]] == [True]
    assert "worse" in {series["status"] for series in plain["series"]}


def test_what_is_withdrawn_is_said_with_its_reason() -> None:
    trend = year()
    key = trend.changes[0].series
    named = KnownChange("gone", key, run(99).sha, run(100).sha, True, "2026-03-01T02:00:00Z")
    withdrawn = (
        Withdrawal(named, 1.004),
        Withdrawal(replace(named, id="part"), 1.1, part_of="abcd"),
        Withdrawal(replace(named, id="lost"), None, runs_gone=True),
    )
    trend = replace(trend, withdrawn=withdrawn)
    reasons = (
        "first reported 2026-03-01: with the runs since, it can be noise (+0.4 % there today)",
        "it is part of the change abcd",
        "the runs there are no longer recorded",
    )
    for text in (front(trend), render_trend_markdown(trend), "\n".join(trend_lines(trend))):
        assert "Withdrawn" in text
        assert [text.count(reason) for reason in reasons] == [1, 1, 1]
    plain = json.loads(trend_json(trend))["withdrawn"]
    assert [(entry["id"], entry["ratio"], entry["part_of"]) for entry in plain] == [
        ("gone", 1.004, None),
        ("part", 1.1, "abcd"),
        ("lost", None, None),
    ]
    assert "Withdrawn" not in front(year())


def test_an_empty_history_says_what_to_do() -> None:
    empty = replace(quiet_trend(), series=(), timelines={})
    assert "Nothing is recorded yet" in front(empty)
    assert "no run is in the history" in front(empty)


def test_markdown_names_new_changes_and_folds_the_rest() -> None:
    text = render_trend_markdown(year())
    shown, _, folded = text.partition("<details>")
    assert text.startswith(
        "## 2 series got worse since the last report; 1 older regression is open\n"
    )
    assert shown.count("\n| ▲") == 2
    assert "+11.0" not in shown
    assert "+11.0" in folded
    assert with_cmark_gfm(text).tags.count("table") == 3
    assert "latency_p50" in with_cmark_gfm(text).cells


def test_markdown_lists_what_was_acknowledged_with_its_note() -> None:
    trend = year()
    noted = tuple(
        replace(one, note="Meant: <b>safer</b>.") if one.status == "acknowledged" else one
        for one in trend.changes
    )
    text = render_trend_markdown(with_changes(trend, *noted))
    _, _, folded = text.partition("<summary>Acknowledged</summary>")
    listed, _, _ = folded.partition("</details>")
    (line,) = [line for line in listed.splitlines() if line.startswith("- ")]
    assert "+30.0" in line
    assert "loader" in line
    assert "Meant:" in line
    assert "<b>" not in line
    assert "Acknowledged" not in render_trend_markdown(quiet_trend())


def test_markdown_of_strangers_names_stays_within_githubs_limit_and_is_text() -> None:
    text = render_trend_markdown(hostile())
    assert len(text) < 65_536
    usual = set(with_cmark_gfm(render_trend_markdown(year())).tags)
    assert set(with_cmark_gfm(text).tags) <= usual


def test_json_holds_every_change_and_every_series() -> None:
    trend = year()
    told = json.loads(trend_json(trend))
    assert told["schema"] == "perfci.trend/1"
    assert [one["id"] for one in told["changes"]] == [one.id for one in trend.changes]
    assert told["changes"][0]["sha_after"] == run(352).sha
    assert told["changes"][1]["ratio"] is None
    assert len(told["series"]) == len(trend.series)
    statuses = {(one["case"], one["metric"], one["environment"]): one for one in told["series"]}
    worse = statuses["encoder[batch=1,mode=eager]", "latency_p50", GPU]
    assert (worse["status"], worse["new"], worse["points"]) == ("worse", True, 365)
    assert told["health"]["false_alarm_rate"] == pytest.approx(1 / 365)
    assert told["drifts"][0]["ratio"] == 1.021
    assert sorted(one for event in told["events"] for one in event["changes"]) == sorted(
        one["id"] for one in told["changes"]
    )


def test_json_can_hold_any_name() -> None:
    told = json.loads(trend_json(hostile()))
    assert "\\udc80surrogate" in {one["metric"] for one in told["series"]}


def test_the_gates_health_says_what_it_rests_on() -> None:
    told = {tile["name"]: tile for tile in tiles(replace(EMPTY_HEALTH, same_reports=20, reports=1))}
    assert told["False alarms"]["figure"] == "0 %"
    assert told["False alarms"]["basis"] == "0 of 20 A/A reports failed; the rate is below 13.9 %"
    assert told["Inconclusive"]["figure"] == "not known"
    assert told["Missing dates"]["figure"] == "not known"


@pytest.mark.parametrize(
    ("reports", "failed", "basis"),
    [
        (1, 0, "0 of 1 A/A report failed: too few for a rate"),
        (19, 2, "2 of 19 A/A reports failed: too few for a rate"),
    ],
)
def test_a_few_comparisons_of_a_commit_with_itself_tell_no_rate(
    reports: int, failed: int, basis: str
) -> None:
    health = replace(EMPTY_HEALTH, same_reports=reports, same_failed=failed)
    (told,) = (tile for tile in tiles(health) if tile["name"] == "False alarms")
    assert (told["figure"], told["basis"]) == ("not known", basis)


@pytest.mark.parametrize(
    ("missing", "since", "basis"),
    [
        ({}, {}, "perfci measured no run. Imported runs follow no schedule."),
        ({"a": ()}, {"a": 1}, "every date has a run"),
        ({"a": ()}, {"a": 21}, "between runs; the last run is 21 days old"),
        (
            {"a": ("2026-01-01",)},
            {"a": 2},
            "between the first run and the last; the last run is 2 days old",
        ),
        (
            {"a": (), "b": ("2026-01-01",), "c": ()},
            {"a": 1, "b": 30, "c": 400},
            "in 1 of 3 environments; the last run is up to 400 days old in 2 of 3 environments",
        ),
    ],
)
def test_nights_since_the_last_run_are_told_beside_the_missing_ones(
    missing: dict[str, tuple[str, ...]], since: dict[str, int], basis: str
) -> None:
    health = replace(EMPTY_HEALTH, missing_nights=missing, days_since_run=since)
    (told,) = (tile["basis"] for tile in tiles(health) if tile["name"] == "Missing dates")
    assert told == basis


class _Tags(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_strangers_add_no_tag_and_no_attribute_to_a_page() -> None:
    def of(trend: Trend) -> tuple[set[str], set[str]]:
        parser = _Tags()
        for name, content in render_site(trend):
            if name.endswith(".html"):
                parser.feed(content.decode())
        return parser.tags, parser.attributes

    tags, attributes = of(hostile())
    usual_tags, usual_attributes = of(year())
    assert tags <= usual_tags
    assert attributes <= usual_attributes


def test_nothing_in_a_page_is_inline_so_that_its_policy_can_be_strict() -> None:
    files = dict(render_site(year()))
    pages = {name: content.decode() for name, content in files.items() if name.endswith(".html")}
    assert "index.html" in pages
    for name, text in pages.items():
        assert "script-src 'self' file:;" in text
        assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", text), name


def test_the_first_page_stays_below_a_megabyte_with_many_series() -> None:
    files = dict(render_site(quiet_trend(cases=1600)))
    first = ("index.html", "data/search.js", *(name for name in files if name.startswith("assets")))
    assert (
        sum(len(files[name]) for name in first) < 150_000
    )  # of 16,000 series: ten times search.js
    assert len(files["data/search.js"]) < 64_000
    chunks = [name for name in files if re.fullmatch(r"data/work-\w+\.\d+\.js", name)]
    assert len(chunks) == 50


def test_a_page_names_only_the_data_that_is_its_own() -> None:
    files = dict(render_site(year()))
    (page,) = (files[name].decode() for name in files if name.startswith("benchmarks/tokenise"))
    assert set(re.findall(r'src="\.\./data/([a-z]+-\w+)', page)) == {
        "timeline-1",
        "tokenise-2776a35165",
    }


def test_a_release_stands_at_the_first_measured_night_that_has_it() -> None:
    order = [f"{place:040x}" for place in range(20)]
    nights = tuple(run(row, sha=order[4 + 5 * row]) for row in range(3))  # 4, 9, 14
    lines = {GPU: replace(timeline(GPU, 3), runs=nights)}
    tags = {
        order[9]: ("v1",),
        order[10]: ("v2", "v3, with a comma"),
        order[11]: ("v4", "v2"),
        order[1]: ("older",),
        order[2]: ("old",),
        order[19]: ("new",),
    }
    found = release_runs({**tags, "f" * 40: ("elsewhere",)}, order, lines)
    assert found == {
        order[4]: ("old",),
        order[9]: ("v1",),
        order[14]: ("v2", "v3, with a comma", "v4"),
    }


def test_where_all_have_too_few_nights_nothing_is_said_to_be_steady() -> None:
    trend = quiet_trend(cases=3, nights=4)
    young = replace(trend, too_few=frozenset(one.key for one in trend.series))
    for text in (front(young), render_trend_markdown(young), "\n".join(trend_lines(young))):
        assert text.count("Too early to tell: 3 of 3 series have fewer than 8 runs") <= 2
        assert "Too early to tell: 3 of 3 series have fewer than 8 runs" in text
        assert "Nothing moved" not in text
    told = json.loads(trend_json(young))
    assert {one["status"] for one in told["series"]} == {"too_few"}


def test_nothing_moved_is_said_only_of_those_that_can_be_told() -> None:
    trend = quiet_trend(cases=3, nights=8)
    mixed = replace(trend, too_few=frozenset({trend.series[1].key}))
    for text in (front(mixed), render_trend_markdown(mixed), "\n".join(trend_lines(mixed))):
        assert "Nothing moved in the 2 series that can be judged since the last report" in text
        assert "Too early to tell: 1 of 3 series have fewer than 8 runs." in text


def test_a_report_before_which_none_told_anything_does_not_speak_of_a_last_one() -> None:
    for trend in (
        replace(year(), reported_before=False),
        replace(quiet_trend(), reported_before=False),
    ):
        for text in (front(trend), render_trend_markdown(trend), trend_lines(trend)[0]):
            assert "ince the last report" not in text


def test_a_step_between_nights_of_one_commit_blames_no_commit() -> None:
    trend = year()
    first = trend.changes[0]
    at_one = (first.commits[1], first.commits[1])
    same = replace(first, commits=at_one, commits_within=at_one)
    for text in (
        front(with_changes(trend, same)),
        render_trend_markdown(with_changes(trend, same)),
        "\n".join(trend_lines(with_changes(trend, same))),
    ):
        assert "same commit: the machine or something around it moved, not the code" in text
        assert "Pad the vocabulary to a multiple of 64" not in text
