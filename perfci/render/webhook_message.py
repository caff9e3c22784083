"""Pure: the message about new events, as Slack's incoming webhooks take it.

Mattermost, Rocket.Chat and Discord (at its ``/slack`` address) take the same JSON. Names are
strangers' text: in code spans, with ``&``, ``<`` and ``>`` escaped as Slack asks, and with what
others look for after that (``@here``, ``https://``, ``www.``, ``#1``) broken by a zero-width space.
Limits: https://docs.slack.dev/reference/block-kit/blocks (50 blocks, 3,000 characters a section,
150 a header).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from perfci.render.clean import clean_line
from perfci.render.site.words import (
    SAME_COMMIT,
    SHORT,
    event_size,
    event_text,
    size_text,
    surety_text,
)
from perfci.trend.change import Change, Event, Trend
from perfci.trend.timeline.series import SeriesKey
from perfci.units import counted

_MOST_SHOWN = 20
"""Events with a section each; a message is read on a phone."""
_MOST_NAMES = 2
"""Benchmarks that are named of an event; the others are counted."""
_LONGEST_CASE = 200
_LONGEST_NAME = 80
"""Of all else. Escaped five times as long, the three names of a section stay below its limit."""
_BREAK = "\u200b"
_BREAKS = re.compile(
    r"(?<=@)(?=\S)|(?<=#)(?=\w)|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=:)(?=[\w+-]+:)",
    re.IGNORECASE,
)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"}


def webhook_body(trend: Trend, *, report_url: str = "") -> bytes | None:
    """Return the message, as JSON; None where no event is news.

    ``report_url`` (http or https) is linked: it comes from who runs perfci.
    """
    news = [event for event in trend.events if event.news]
    if not news:
        return None
    news.sort(key=lambda event: not event.worse)  # stable: the newest stay first
    units = {one.key: one.unit for one in trend.series}
    shown = news[:_MOST_SHOWN]
    title = _title(news)
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}},
        *(_section(_told(event, units)) for event in shown),
    ]
    if len(news) > len(shown):
        blocks.append(_section(f"…and {counted(len(news) - len(shown), 'more event')}."))
    if report_url:
        blocks.append(_section(f"<{_address(report_url)}|The whole report>"))
    text = f"{title}: {_head(shown[0])}" + (" and others" if len(news) > 1 else "")
    return msgspec.json.encode({"text": text, "blocks": blocks})


def _title(news: Sequence[Event]) -> str:
    worse = sum(event.worse for event in news)
    parts = (
        counted(worse, "new regression") if worse else "",
        counted(len(news) - worse, "new improvement") if worse < len(news) else "",
    )
    series = sum(event.series for event in news)
    many = f" ({series:,} series)" if series > len(news) else ""
    return f"perfci: {' and '.join(filter(None, parts))}{many}"


def _told(event: Event, units: Mapping[SeriesKey, str]) -> str:
    """Return an event of one change as that change, else what its changes have in common."""
    alone = event.changes[0]
    if len(event.changes) == 1:
        size = size_text(alone, units.get(alone.series, ""))
        what = f"*{_plain(size)}*, {_plain(surety_text(alone.q))}, {_range(alone)}"
    else:
        what = f"*{_plain(event_size(event))}*, {_between(event.commits)}"
    notes = [event_text(event)] if event_text(event) else []
    if any(one.benchmark_changed for one in event.changes):
        notes.append("the benchmark's own source changed there, too")
    lines = [_head(event), what, f"on {_code(event.environment)}", *map(_plain_line, notes)]
    return "\n".join(lines)


def _head(event: Event) -> str:
    arrow = ":red_circle: worse:" if event.worse else ":large_green_circle: better:"
    if len(event.changes) == 1:
        return f"{arrow} {_where(event.changes[0].series)}"
    return f"{arrow} {_benchmarks(event)}, {event.series:,} of {event.measured:,} series"


def _benchmarks(event: Event) -> str:
    names = event.benchmarks
    rest = len(names) - _MOST_NAMES
    said = ", ".join(_code(one, _LONGEST_CASE) for one in names[:_MOST_NAMES])
    return f"{said} and {counted(rest, 'more benchmark')}" if rest > 0 else said


def _range(change: Change) -> str:
    before, after = map(_sha, change.commits)
    if change.same_commit:
        return f"at {after} ({SAME_COMMIT})"
    ramp = change.kind == "ramp"
    best = f"slowly from {before} to {after}" if ramp else _between(change.commits)
    if change.commits_within == change.commits:
        return best
    first, last = map(_sha, change.commits_within)
    return f"{best} (with 95 % confidence between {first} and {last})"


def _between(commits: tuple[str, str]) -> str:
    before, after = map(_sha, commits)
    return f"at {after}" if commits[0] == commits[1] else f"between {before} and {after}"


def _where(key: SeriesKey) -> str:
    return f"{_code(key.case, _LONGEST_CASE)} {_code(key.metric)}"


def _sha(sha: str) -> str:
    return _code(sha[:SHORT]) if sha else "an unknown commit"


def _section(text: str) -> dict[str, Any]:
    # verbatim: Slack looks for no links, channels or mentions of its own accord
    whole = {"type": "mrkdwn", "text": text, "verbatim": True}
    return {"type": "section", "text": whole}


def _code(text: str, limit: int = _LONGEST_NAME) -> str:
    return f"`{_plain(text, limit) or '-'}`"


def _plain(text: str, limit: int = _LONGEST_NAME) -> str:
    line = _BREAKS.sub(_BREAK, clean_line(text, limit))
    return "".join(_ENTITIES.get(character, character) for character in line)


def _plain_line(text: str) -> str:
    return _plain(text, _LONGEST_CASE)


def _address(url: str) -> str:
    return "".join(_ENTITIES.get(one, one) for one in url).replace("|", "%7C")
