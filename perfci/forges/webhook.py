"""One message about new events to a webhook, whose address is a secret.

A message is repeated only where it surely didn't arrive: it was never sent whole, or the answer was
429 or 5xx. Where the answer is lost no one knows, and a message twice would be worse than none.

Mattermost, Rocket.Chat and Discord (at its ``/slack`` address) take the same JSON. Names are
strangers' text. They stand in code spans, with ``&``, ``<`` and ``>`` escaped as Slack asks. What
other services look for even there (``@here``, ``https://``, ``www.``, ``#1``) is broken by a
zero-width space.
Limits: https://docs.slack.dev/reference/block-kit/blocks (50 blocks, 3,000 characters a section,
150 a header).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import SplitResult

import msgspec

from perfci.errors import OutsideError, UsageError
from perfci.forges.http import (
    Connection,
    HttpResponse,
    NoResponse,
    Retryable,
    RetryPolicy,
    address_of,
    requested_wait,
    retry,
)
from perfci.report.clean import clean_line
from perfci.report.site.words import (
    SAME_COMMIT,
    SHORT,
    event_size,
    event_text,
    names_text,
    news_of,
    news_title,
    size_text,
    surety_text,
)
from perfci.trend import Change, SeriesKey, Trend, TrendEvent
from perfci.units import counted, format_duration

POLICY = RetryPolicy(tries=4)
_HEADERS = {
    "Content-Type": "application/json",
    "Connection": "close",  # on one kept open, a message may be lost to a server that is closing
}
_MOST_SHOWN = 20
"""Events with a section each. A message is read on a phone."""
_MOST_NAMES = 2
"""Benchmarks that are named of an event. The others are counted."""
_LONGEST_CASE = 200
"""Characters of a case's name."""
_LONGEST_NAME = 80
"""Characters of any other name.

Escaping makes a name up to five times as long. The three names of a section still stay below its
limit then.
"""
_BREAK = "\u200b"
_BREAKS = re.compile(
    r"(?<=@)(?=\S)|(?<=#)(?=\w)|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=:)(?=[\w+-]+:)",
    re.IGNORECASE,
)
"""Where a text could hold a mention, a reference, a link or an emoji."""
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"}


class MaybeDelivered(OutsideError):
    """The message was sent and the answer was lost. It is not sent again."""


def require_webhook(url: str) -> SplitResult:
    """Return the parts of a webhook's address. UsageError, without the address, if it is unfit."""
    parts = address_of(url)
    plain = url.isascii() and url.isprintable() and " " not in url
    if parts is None or not plain or "@" in parts.netloc:
        raise UsageError(
            "bad-webhook",
            "the webhook's address is no address (it is a secret, and not shown)",
            "Give it as in https://hooks.slack.com/services/…, best by PERFCI_WEBHOOK.",
        )
    return parts


def send(
    url: str,
    body: bytes,
    policy: RetryPolicy = POLICY,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.time,
) -> None:
    """Send ``body``, which is JSON. OutsideError where it did not arrive."""
    webhook = f"the webhook at {clean_line(require_webhook(url).hostname or '', 100)}"
    with closing(Connection(policy.timeout, most_bytes=0)) as connection:

        def post() -> None:
            try:
                answer = connection.send("POST", url, _HEADERS, body)
            except NoResponse as failure:
                raise _undelivered(webhook, failure) from None
            _judge(webhook, answer, now())

        retry(post, policy, sleep)


def _undelivered(webhook: str, failure: NoResponse) -> OutsideError:
    if failure.sent:
        return MaybeDelivered(
            "webhook-unsure",
            f"{webhook} took the message and gave no answer: {failure.why}",
            "Look whether it arrived. It is not sent again.",
        )
    how = f" in {format_duration(failure.spent)}" if failure.spent else f": {failure.why}"
    return _failed(f"{webhook} can't be reached{how}", spent=failure.spent)


def _judge(webhook: str, answer: HttpResponse, now: float) -> None:
    """Raise what the answer means, unless the message was taken."""
    if 200 <= answer.status < 300:
        return
    what = f"{webhook} answered {answer.status}"
    if answer.status == 429 or answer.status >= 500:
        raise _failed(what, wait=requested_wait(answer.headers.get("retry-after", ""), now))
    if 300 <= answer.status < 400:
        raise OutsideError(
            "webhook-moved",
            f"{what}: it wants the message sent elsewhere",
            "Redirects are not followed: the address is a secret. Give the new one.",
        )
    raise OutsideError(
        "webhook-refused",
        f"{what}: it didn't take the message",
        "Is the webhook still there, and its channel? Make a new one, and set PERFCI_WEBHOOK.",
    )


def _failed(what: str, wait: float | None = None, spent: float = 0.0) -> Retryable:
    advice = "Nothing was sent. Run it again later: what is new stays new."
    return Retryable("webhook-failed", what, advice, wait, spent)


def webhook_body(trend: Trend, *, report_url: str = "") -> bytes | None:
    """Return the message, as JSON, or None where no event is news.

    ``report_url`` (http or https) is linked, because it comes from the user who runs perfci.
    """
    news = news_of(trend)
    if not news:
        return None
    units = {series.key: series.unit for series in trend.series}
    shown = news[:_MOST_SHOWN]
    title = news_title(news)
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}},
        *(_section(_event_text(event, units)) for event in shown),
    ]
    if len(news) > len(shown):
        blocks.append(_section(f"…and {counted(len(news) - len(shown), 'more event')}."))
    if report_url:
        blocks.append(_section(f"<{_address(report_url)}|The whole report>"))
    text = f"{title}: {_head(shown[0])}" + (" and others" if len(news) > 1 else "")
    return msgspec.json.encode({"text": text, "blocks": blocks})


def _event_text(event: TrendEvent, units: Mapping[SeriesKey, str]) -> str:
    """Return an event of one change as that change, else what its changes have in common."""
    alone = event.changes[0]
    if len(event.changes) == 1:
        size = size_text(alone, units.get(alone.series, ""))
        what = f"*{_plain(size)}*, {_plain(surety_text(alone.q))}, {_range(alone)}"
    else:
        what = f"*{_plain(event_size(event))}*, {_between(event.commits)}"
    notes = [event_text(event)] if event_text(event) else []
    if any(change.benchmark_changed for change in event.changes):
        notes.append("the benchmark's own source changed there, too")
    lines = [_head(event), what, f"on {_code(event.environment)}", *map(_plain_line, notes)]
    return "\n".join(lines)


def _head(event: TrendEvent) -> str:
    arrow = ":red_circle: worse:" if event.worse else ":large_green_circle: better:"
    if len(event.changes) == 1:
        return f"{arrow} {_where(event.changes[0].series)}"
    names = names_text(event.benchmarks, _MOST_NAMES, lambda name: _code(name, _LONGEST_CASE))
    return f"{arrow} {names}, {event.series:,} of {event.measured:,} series"


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
    return "".join(_ENTITIES.get(character, character) for character in url).replace("|", "%7C")
