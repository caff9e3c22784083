"""The recipients of a trend's news: issues and messages.

Messages go to any service that apprise knows: chats, e-mail, webhooks. They are plain text.
Strangers' names in them can't mention anyone, and can't link. Addresses hold secrets, and are shown
nowhere.
"""

from __future__ import annotations

import importlib.util
import logging
import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.errors import OutsideError, UsageError, extra_advice
from perfci.forges import actions
from perfci.outputs import Say
from perfci.report.clean import clean_line, unlinked
from perfci.trend import Trend
from perfci.units import listed

if TYPE_CHECKING:
    from perfci.forges.github import GitHubClient

_ADDRESS = re.compile(r"https?://[A-Za-z0-9][^\s()<>|`\"\\]{0,1000}")
"""A web address that is safe to link as it is."""
_MOST_SHOWN = 20
"""Events with a line each. The others are counted."""
_LONGEST_LINE = 400
# apprise logs a failure with what it was about to send, and to which address
logging.getLogger("apprise").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Notifications:
    """The recipients of a trend's news. ``notify`` are apprise's addresses, which are secrets.

    ``report_url`` is linked.
    """

    notify: tuple[str, ...] = ()
    github_issue: bool = False
    repository: str | None = None
    issue_author: str = "github-actions[bot]"
    report_url: str = ""

    def check(self, *, remember: bool = True) -> None:
        """Raise an error early if a recipient could not be reached afterwards.

        Without ``remember``, news would stay new and be sent each time. That is refused.
        """
        if not remember and (self.notify or self.github_issue):
            raise UsageError(
                "notified-twice",
                "--no-remember is given with --notify or --github-issue",
                "News that are not remembered would be sent each time. Leave one of them out "
                "(PERFCI_NOTIFY= switches messages off).",
            )
        if self.report_url and not _ADDRESS.fullmatch(self.report_url):
            raise UsageError(
                "bad-address",
                f"--report-url is {self.report_url!r}, no address that can be linked",
                "Give it as in https://example.org/report, without blanks and brackets.",
            )
        _services(self.notify)
        if self.github_issue:
            self._client().close()

    def send(self, trend: Trend, say: Say) -> None:
        """Send the news. OutsideError if a recipient can't be reached.

        Messages come last, because they can't be taken back. After a failure, the issues that were
        written are found again.
        """
        if self.github_issue:
            self._write_issues(trend, say)
        if self.notify and (names := send_news(self.notify, trend, self.report_url)):
            say(f"sent the news to {listed(names)}")

    def _write_issues(self, trend: Trend, say: Say) -> None:
        from perfci.forges.github import Refused
        from perfci.forges.issues import tell_issues

        with closing(self._client()) as client:
            try:
                outcomes = tell_issues(client, trend, self.issue_author, report_url=self.report_url)
            except Refused as failure:
                say(f"issue not written, the token may not: {failure.message}", err=True)
                return
        for outcome in outcomes:
            say(outcome)

    def _client(self) -> GitHubClient:
        return actions.client(self.repository, "issues: write")


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
    for service in _services(addresses):
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


def _services(addresses: Sequence[str]) -> tuple[Any, ...]:
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


def _news(trend: Trend) -> tuple[str, list[str]]:
    """Return the title of the news, and a line for each new event."""
    from perfci.report.site.lists import TrendRows, catalogue, row_text, standings
    from perfci.report.site.words import news_of, news_title

    news = news_of(trend)
    if not news:
        return "", []
    rows = TrendRows(trend, catalogue(trend, standings(trend)), drawn=False)
    texts = (row_text(row, True) for row in rows.of(news[:_MOST_SHOWN]))
    # Slack takes <…> for a mention or a link
    lines = [unlinked(clean_line(text, _LONGEST_LINE)).replace("<", "<\u200b") for text in texts]
    rest = len(news) - len(lines)
    return news_title(news), [*lines, *([f"and {rest} more"] if rest else [])]
