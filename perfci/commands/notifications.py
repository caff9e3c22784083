"""The recipients of a trend's news: issues and messages."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfci.errors import UsageError
from perfci.forges import actions
from perfci.outputs import Say
from perfci.trend import Trend
from perfci.units import listed

if TYPE_CHECKING:
    from perfci.forges.github import GitHubClient

_ADDRESS = re.compile(r"https?://[A-Za-z0-9][^\s()<>|`\"\\]{0,1000}")
"""A web address that is safe to link as it is."""


@dataclass(frozen=True, slots=True)
class Notifications:
    """The recipients of a trend's news. ``notify`` are apprise's addresses, which are secrets.

    ``most_wait_s`` bounds all waits for GitHub. ``report_url`` is linked.
    """

    notify: tuple[str, ...] = ()
    github_issue: bool = False
    repository: str | None = None
    issue_author: str = "github-actions[bot]"
    report_url: str = ""
    most_wait_s: float = 120.0

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
        if self.notify:
            from perfci.forges.news import services

            services(self.notify)
        if self.github_issue:
            self._client().close()

    def send(self, trend: Trend, say: Say) -> None:
        """Send the news. OutsideError if a recipient can't be reached.

        Messages come last, because they can't be taken back. After a failure, the issues that were
        written are found again.
        """
        if self.github_issue:
            self._write_issues(trend, say)
        if self.notify:
            from perfci.forges.news import send_news

            names = send_news(self.notify, trend, self.report_url)
            if names:
                say(f"sent the news to {listed(names)}")

    def _write_issues(self, trend: Trend, say: Say) -> None:
        from perfci.forges.issues import tell_issues

        with closing(self._client()) as client:
            outcomes = tell_issues(client, trend, self.issue_author, report_url=self.report_url)
        for outcome in outcomes:
            refused = outcome.kind == "refused"
            before = "issue not written, the token may not: " if refused else ""
            say(before + outcome.text, err=refused)

    def _client(self) -> GitHubClient:
        return actions.client(self.repository, self.most_wait_s, "issues: write")
