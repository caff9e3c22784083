"""The site for programs: an Atom feed of its events, and a badge."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from perfci.report.site.pages import render_site
from perfci.trend import Trend
from tests.report.hostile import NAMES
from tests.report.site.histories import quiet_trend, year

ATOM = "{http://www.w3.org/2005/Atom}"
SVG = "{http://www.w3.org/2000/svg}"


def file_of(trend: Trend, name: str) -> ET.Element:
    files = dict(render_site(trend))
    return ET.fromstring(files[name])


def test_the_feed_has_an_entry_for_each_event_the_newest_first() -> None:
    trend = year()
    feed = file_of(trend, "events.atom")
    entries = feed.findall(f"{ATOM}entry")
    ids = [one.findtext(f"{ATOM}id") for one in entries]
    assert ids == [f"urn:perfci:event:{event.id}" for event in trend.events]
    assert len(set(ids)) == len(ids) > 2
    titles = [one.findtext(f"{ATOM}title", "") for one in entries]
    assert any(title.startswith("+5.2 % worse: encoder[batch=1,mode=eager]") for title in titles)
    (link,) = entries[0].findall(f"{ATOM}link")
    assert link.attrib["href"].startswith("benchmarks/")
    for one in (feed, *entries):  # RFC 4287: each has an id, a title and a time with its zone
        assert all(one.findtext(f"{ATOM}{name}") for name in ("id", "title"))
        assert one.findtext(f"{ATOM}updated", "").endswith(("+00:00", "Z"))


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_leave_the_feed_well_formed(name: str) -> None:
    trend = year()
    events = tuple(replace(one, id=name, at=name) for one in trend.events)
    changes = tuple(
        replace(event, changes=tuple(replace(one, note=name, id=name) for one in event.changes))
        for event in events
    )
    feed = file_of(replace(trend, events=changes), "events.atom")
    assert len(feed.findall(f"{ATOM}entry")) == len(events)


def test_the_badge_counts_what_is_worse_and_open() -> None:
    def said(trend: Trend) -> str:
        return file_of(trend, "badge.svg").findtext(f"{SVG}title", "")

    assert said(year()) == "performance: 3 regressions"
    assert said(quiet_trend()) == "performance: no regression"
    assert said(replace(quiet_trend(), series=())) == "performance: no data"
