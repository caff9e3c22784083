"""The page as text: it asks no host, holds no markup of a stranger's, and takes old reports."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from perfci.measure.selection import select
from perfci.model.case import Case
from perfci.model.report import Estimate, Report
from perfci.report.clean import clean_line, clean_lines
from perfci.report.exporters.html import render as render_page
from perfci.report.replay import replay_command, selection_of
from perfci.report.rows import BLAME
from perfci.report.templates import read_template
from tests.report.examples import alone_report, passing_report, rich_report
from tests.report.hostile import NAMES
from tests.report.page.reports import drawn_report, hostile_page_report, large_report

ATTRIBUTES = ("href", "src", "action", "srcset", "style", "data", "formaction")


class Elements(HTMLParser):
    """The elements of a page, what they may load or run, and what it says beside its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.loads: list[str] = []
        self.says = ""
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self._inside = tag
        for name, value in attrs:
            if name in ATTRIBUTES or name.startswith("on"):
                self.loads.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        if self._inside not in {"style", "script"}:
            self.says += data


def loads_nothing(page: str) -> None:
    assert Elements(page).loads == ["link href=data:,", "a href=#content"]
    assert page == clean_lines(page)


def rows_of(page: str) -> list[dict[str, Any]]:
    (found,) = re.findall(r'<script type="application/json" id="rows">(.*?)</script>', page)
    data = json.loads(found)
    return [dict(zip(data["fields"], row, strict=True)) for row in data["rows"]]


def test_the_legend_shows_all_that_a_strip_draws_in_its_colours_and_explains_the_badges() -> None:
    page = render_page(rich_report())
    (first, *_), drawn = re.findall(r'<p class="legend quiet".*?</p>', page, re.DOTALL), (
        read_template("report/strip.js")
    )  # fmt: skip
    for mark in set(re.findall(r'(?:block|upright)\("(\w+)"|class: "(pair)"', drawn)):
        assert f'class="{"".join(mark)}"' in first, mark
    for sense in ("worse", "better"):
        for mark in ("interval", "estimate"):
            assert re.search(rf'<g class="{sense}"><\w+ class="{mark}"', first), (sense, mark)
    badges = set(re.findall(r'<span class="badge" title="[^"]*">(\w+)</span>', page))
    assert badges
    for badge in badges:
        assert f"To blame: <b>{badge}</b>, {BLAME[badge]}" in page  # type: ignore[index]


@pytest.mark.parametrize(
    "report", [drawn_report(), rich_report(), passing_report(), alone_report()]
)
def test_the_page_loads_nothing(report: Report) -> None:
    loads_nothing(render_page(report))


def test_whatever_the_names_are_they_are_text() -> None:
    plain = large_report(len(NAMES))
    page = render_page(hostile_page_report())
    loads_nothing(page)
    known = {"a", "link", "img", "script", "style", "iframe", "table", "meta", "form", "object"}
    hostile, calm = Elements(page), Elements(render_page(plain))
    assert {tag: hostile.tags.get(tag) for tag in known} == {
        tag: calm.tags.get(tag) for tag in known
    }
    assert set(hostile.tags) <= set(Elements(render_page(drawn_report())).tags)
    shown = {row["case"] for row in rows_of(page)}
    assert {clean_line(name) for name in NAMES if name} <= shown


def test_a_report_without_values_has_its_page() -> None:
    page = rows_of(render_page(rich_report()))
    sides = [side for row in page for side in row["sides"] if side]
    assert sides
    assert not any(side[name] for side in sides for name in ("values", "quantiles", "firsts"))


def test_a_side_without_a_number_is_drawn_without_it() -> None:
    (first, *others) = drawn_report().results
    nothing = replace(first, base=Estimate(None, None, None, 0, 0))
    rows = rows_of(render_page(drawn_report(results=(nothing, *others))))
    assert rows[0]["sides"][0] is None


def test_a_thousand_rows_are_less_than_a_megabyte() -> None:
    page = render_page(large_report(1000))
    assert len(page.encode()) < 950_000
    assert page.index('<ol class="moved') < 40_000  # what moved is read first


# What measures a row again.


@pytest.mark.parametrize("name", [*NAMES, "encoder[batch=1]", "a b", "f(x)", "not", "$(id)"])
def test_a_replay_line_is_one_word_for_a_shell_and_selects_its_case(name: str) -> None:
    argument = selection_of(name)
    if not argument:
        return
    assert shlex.split(f"perfci -k {argument}") == ["perfci", "-k", name]
    case = Case(id=name, benchmark=name, axes={}, file="", line=1, source_hash="")
    if not set("*?").intersection(name):
        assert select([case], name) == (case,)


def test_only_two_commits_can_be_compared_again() -> None:
    report = drawn_report()
    assert replay_command(report) == f"perfci compare {'a' * 40} {'b' * 40} -k "
    dirty = replace(report, head=replace(report.head, dirty=True))
    odd = replace(report, head=replace(report.head, sha="b; id"))
    assert [replay_command(one) for one in (dirty, odd, alone_report())] == ["", "", ""]
