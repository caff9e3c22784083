"""Site, Markdown, JSON and terminal: what they say of the same trend."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from perfci.report.site.pages import render_site, render_trend_markdown, trend_lines
from perfci.report.trend import trend_json
from perfci.trend import Trend
from tests.report.rendered import with_cmark_gfm
from tests.report.site.histories import GPU, quiet_trend, run, with_changes, year
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
    assert told["drifts"][0]["ratio"] == 1.021
    assert sorted(one for event in told["events"] for one in event["changes"]) == sorted(
        one["id"] for one in told["changes"]
    )


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
    assert attributes <= {*usual_attributes, "open"}  # of a list that is longer


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
