"""A trend's news as a message to any service that apprise knows: chats, e-mail, webhooks.

The message is plain text. Strangers' names in it can't mention anyone, and can't link: what
services look for is broken by a zero-width space. Addresses hold secrets, and are shown nowhere.
"""

from __future__ import annotations

import importlib.util
import logging
import re
from collections.abc import Sequence
from typing import Any

from perfci.errors import OutsideError, UsageError, extra_advice
from perfci.report.clean import clean_line
from perfci.report.site.catalogue import catalogue, standings
from perfci.report.site.rows import TrendRows, row_text
from perfci.report.site.words import news_of, news_title
from perfci.trend import Trend
from perfci.units import listed

_MOST_SHOWN = 20
"""Events with a line each. The others are counted."""
_LONGEST_LINE = 400
_BREAK = "\u200b"
_BREAKS = re.compile(
    r"(?<=[@<])(?=\S)|(?<=#)(?=\w)|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=:)(?=[\w+-]+:)", re.IGNORECASE
)
"""Where a text could hold a mention, a reference, a link or an emoji."""
# apprise logs a failure with what it was about to send, and to which address
logging.getLogger("apprise").addHandler(logging.NullHandler())


def services(addresses: Sequence[str]) -> tuple[Any, ...]:
    """Return apprise's service at each address. UsageError, without the address, if it has none."""
    if not addresses:
        return ()
    if importlib.util.find_spec("apprise") is None:
        raise UsageError(
            "no-apprise", "--notify needs apprise, which isn't installed", extra_advice("notify")
        )
    import apprise

    known = tuple(apprise.Apprise.instantiate(address) for address in addresses)
    for number, service in enumerate(known, 1):
        if service is None:
            raise UsageError(
                "bad-notify-address",
                f"address {number} of --notify is none that apprise knows (it may be a secret, and "
                "is not shown)",
                "Give it as in slack://TOKEN/#CHANNEL (https://appriseit.com/services/), best by "
                "PERFCI_NOTIFY.",
            )
        if service.overflow_mode == apprise.OverflowMode.UPSTREAM:  # the address names no other
            service.overflow_mode = apprise.OverflowMode.SPLIT
    return known


def send_news(addresses: Sequence[str], trend: Trend, report_url: str = "") -> tuple[str, ...]:
    """Send the new events to each address, and return the services' names. Empty without news.

    OutsideError if one of them took no message, after all others were sent theirs.
    """
    title, lines = _news(trend)
    if not lines:
        return ()
    import apprise

    body = "\n".join([*lines, *([f"The whole report: {report_url}"] if report_url else [])])
    names: list[str] = []
    refused: list[str] = []
    for service in services(addresses):
        sender = apprise.Apprise()
        sender.add(service)
        sent = sender.notify(body=body, title=title, body_format=apprise.NotifyFormat.TEXT)
        (names if sent else refused).append(str(service.service_name))
    if refused:
        others = f"; {listed(names)} did" if names else ""
        raise OutsideError(
            "not-notified",
            f"{listed(refused)} took no message{others}",
            "Try the address with apprise's own command: apprise -v -b test ADDRESS. What is new "
            "stays new, and is sent to all of them again.",
        )
    return tuple(names)


def _news(trend: Trend) -> tuple[str, list[str]]:
    """Return the title of the news, and a line for each new event."""
    news = news_of(trend)
    if not news:
        return "", []
    rows = TrendRows(trend, catalogue(trend, standings(trend)), drawn=False)
    texts = [row_text(row, True) for row in rows.of(news[:_MOST_SHOWN])]
    lines = [_BREAKS.sub(_BREAK, clean_line(text, _LONGEST_LINE)) for text in texts]
    rest = len(news) - len(lines)
    return news_title(news), [*lines, *([f"and {rest} more"] if rest else [])]
