"""Pure: the message about new change points, as Slack's incoming webhooks take it.

Mattermost, Rocket.Chat and Discord (at its ``/slack`` address) take the same JSON. Names are
strangers' text: in code spans, with ``&``, ``<`` and ``>`` escaped as Slack asks, and with what
others look for after that (``@here``, ``https://``, ``www.``, ``#1``) broken by a zero-width space.
Limits: https://docs.slack.dev/reference/block-kit/blocks (50 blocks, 3,000 characters a section,
150 a header).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from perfci.render.clean import clean_line
from perfci.render.site.words import SAME_COMMIT, SHORT, size_text, surety_text
from perfci.trend.change import Change, Trend
from perfci.trend.timeline.series import SeriesKey
from perfci.units import counted

_MOST_SHOWN = 20
"""Change points with a section each; a message is read on a phone."""
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
    """Return the message, as JSON; None where no change point is new.

    ``report_url`` (http or https) is linked: it comes from who runs perfci.
    """
    new = [change for change in trend.changes if change.status == "new"]
    if not new:
        return None
    new.sort(key=lambda change: not change.worse)  # stable: the worst stay first
    units = {one.key: one.unit for one in trend.series}
    shown = new[:_MOST_SHOWN]
    title = _title(new)
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}},
        *(_section(_told(change, units)) for change in shown),
    ]
    if len(new) > len(shown):
        blocks.append(_section(f"…and {counted(len(new) - len(shown), 'more change point')}."))
    if report_url:
        blocks.append(_section(f"<{_address(report_url)}|The whole report>"))
    first = f"{_arrow(shown[0])} {_where(shown[0].series)}"
    text = f"{title}: {first}" + (" and others" if len(new) > 1 else "")
    return msgspec.json.encode({"text": text, "blocks": blocks})


def _title(new: Sequence[Change]) -> str:
    worse = sum(change.worse for change in new)
    parts = (
        counted(worse, "new regression") if worse else "",
        counted(len(new) - worse, "new improvement") if worse < len(new) else "",
    )
    return f"perfci: {' and '.join(filter(None, parts))}"


def _told(change: Change, units: dict[SeriesKey, str]) -> str:
    size = size_text(change, units.get(change.series, ""))
    lines = [
        f"{_arrow(change)} {_where(change.series)}",
        f"*{_plain(size)}*, {_plain(surety_text(change.q))}, {_range(change)}",
        f"on {_code(change.series.environment)}",
    ]
    if change.benchmark_changed:
        lines.append("The benchmark's own source changed there, too.")
    return "\n".join(lines)


def _range(change: Change) -> str:
    before, after = map(_sha, change.commits)
    if change.same_commit:
        return f"at {after} ({SAME_COMMIT})"
    ramp = change.kind == "ramp"
    best = f"slowly from {before} to {after}" if ramp else f"between {before} and {after}"
    if change.commits_within == change.commits:
        return best
    first, last = map(_sha, change.commits_within)
    return f"{best} (with 95 % confidence between {first} and {last})"


def _arrow(change: Change) -> str:
    return ":red_circle: worse:" if change.worse else ":large_green_circle: better:"


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


def _address(url: str) -> str:
    return "".join(_ENTITIES.get(one, one) for one in url).replace("|", "%7C")
