"""The site for programs: its events as an Atom feed, and how many are open as a badge."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from perfci.render.clean import clean_line
from perfci.render.site import words
from perfci.render.site.catalogue import Catalogue
from perfci.render.site.event_groups import SortedEvents
from perfci.render.site.event_rows import event_rows
from perfci.render.site.moved import Moved
from perfci.trend.change import Event, Trend
from perfci.units import counted

_ATOM = "http://www.w3.org/2005/Atom"
_MOST = 50
"""Events: a reader asks for the feed again and again."""
_BEGINNING = b'<?xml version="1.0" encoding="utf-8"?>\n'


def feed_file(trend: Trend, listed: Catalogue) -> tuple[str, bytes]:
    """Return the feed of the newest events; its addresses are beside its own."""
    feed = ET.Element("feed", xmlns=_ATOM)
    _add(feed, "title", "perfci trend")
    _add(feed, "id", "urn:perfci:trend")
    _add(feed, "updated", _moment(trend.created_at, trend))
    ET.SubElement(feed, "link", rel="self", href="events.atom")
    ET.SubElement(feed, "link", rel="alternate", type="text/html", href="index.html")
    _add(ET.SubElement(feed, "author"), "name", f"perfci {trend.perfci_version}")
    keys = {one.key for one in trend.series}
    events = [one for one in trend.events[:_MOST] if one.changes[0].series in keys]
    for event, row in zip(events, event_rows(events, trend, listed, drawn=False), strict=True):
        _entry(feed, event, row, trend)
    ET.indent(feed, " ")
    return "events.atom", _BEGINNING + ET.tostring(feed, "utf-8") + b"\n"


def _entry(feed: ET.Element, event: Event, row: Moved, trend: Trend) -> None:
    entry = ET.SubElement(feed, "entry")
    way = words.meaning(row.worse)
    _add(entry, "title", f"{row.size} {way}: {row.case} {row.metric}")
    _add(entry, "id", f"urn:perfci:event:{clean_line(event.id, 100)}")
    _add(entry, "updated", _moment(event.ended_at or event.at, trend))
    ET.SubElement(entry, "link", rel="alternate", type="text/html", href=row.href)
    ET.SubElement(entry, "category", term=event.kind)
    ET.SubElement(entry, "category", term=way)
    said = (row.environment, row.commits, row.subject, row.note, f"status {event.status}")
    _add(entry, "summary", "; ".join(filter(None, said)))


def _add(parent: ET.Element, name: str, text: str) -> None:
    ET.SubElement(parent, name).text = clean_line(text, 1000)


def _moment(moment: str, trend: Trend) -> str:
    """Return a time as Atom wants it; the report's own for one that nobody knows."""
    known = moment if words.is_moment(moment) else trend.created_at
    return known if words.is_moment(known) else "1970-01-01T00:00:00Z"


_LETTER = 6.6
"""Pixels, of a letter in 11 px Verdana, widely reckoned: a badge may not cut its text."""


def badge_file(groups: SortedEvents, trend: Trend) -> tuple[str, bytes]:
    """Return the badge: how many events are worse and open."""
    open_ = len(groups.new_worse) + len(groups.open_worse)
    said = counted(open_, "regression") if open_ else "no regression"
    if not trend.series:
        said = "no data"
    colour = "#b3261e" if open_ else "#0b6b3a" if trend.series else "#565f6b"
    return "badge.svg", "".join(_badge("performance", said, colour)).encode()


def _badge(name: str, said: str, colour: str) -> Iterator[str]:
    left, right = (round(len(text) * _LETTER) + 12 for text in (name, said))
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{name}: {said}"><title>{name}: {said}</title>'
        f'<rect width="{left + right}" height="20" rx="3" fill="#3b424a"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1 -3 3h-{right - 3}z" '
        f'fill="{colour}"/><g fill="#fff" font-size="11" text-anchor="middle" '
        f'font-family="Verdana,DejaVu Sans,sans-serif">'
    )
    for text, middle in ((name, left / 2), (said, left + right / 2)):
        yield f'<text x="{middle:g}" y="14">{text}</text>'
    yield "</g></svg>\n"
