"""The recipients of a trend's news: a file for Prometheus, issues, e-mails, a webhook."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perfci.errors import UsageError
from perfci.files import require_writable, write_file
from perfci.forges import actions
from perfci.outputs import STANDARD_OUTPUT, Say, writing
from perfci.trend import Trend
from perfci.units import first_of

if TYPE_CHECKING:
    from perfci.forges.github import GitHubClient

_ADDRESS = re.compile(r"https?://[A-Za-z0-9][^\s()<>|`\"\\]{0,1000}")
"""A web address that is safe to link as it is."""


@dataclass(frozen=True, slots=True)
class Notifications:
    """The recipients of a trend's news. ``webhook`` and ``smtp`` are secret addresses, or empty.

    ``most_wait_s`` bounds all waits for GitHub. ``report_url`` is linked. If ``openmetrics`` is
    ``-``, the caller prints it.
    """

    openmetrics: Path | None = None
    webhook: str = ""
    webhook_format: Literal["slack", "teams"] | None = None
    email: tuple[str, ...] = ()
    email_from: str = ""
    smtp: str = ""
    github_issue: bool = False
    repository: str | None = None
    issue_author: str = "github-actions[bot]"
    report_url: str = ""
    most_wait_s: float = 120.0

    def files(self) -> dict[str, Path]:
        """Return the files that are written, by their options."""
        return {"--openmetrics": self.openmetrics} if self.openmetrics is not None else {}

    def check(self, *, remember: bool = True) -> None:
        """Raise an error early if a recipient could not be reached afterwards.

        Without ``remember``, news would stay new and be sent each time. That is refused.
        """
        if not remember and (self.webhook or self.email or self.github_issue):
            raise UsageError(
                "notified-twice",
                "--no-remember is given with --webhook, --email or --github-issue",
                "News that are not remembered would be sent each time. Leave one of them out "
                "(PERFCI_WEBHOOK= switches the webhook off).",
            )
        if self.report_url and not _ADDRESS.fullmatch(self.report_url):
            raise UsageError(
                "bad-address",
                f"--report-url is {self.report_url!r}, no address that can be linked",
                "Give it as in https://example.org/report, without blanks and brackets.",
            )
        if self.webhook:
            from perfci.forges.webhook import require_webhook

            require_webhook(self.webhook)
        if self.email:
            from perfci.forges.plain_news import mail_server, require_address

            mail_server(self.smtp)
            for address in (*self.email, self.sender):
                require_address(address)
        if self.github_issue:
            self._client().close()
        if self.openmetrics is not None and self.openmetrics != STANDARD_OUTPUT:
            with writing(self.openmetrics):
                require_writable(self.openmetrics)

    @property
    def sender(self) -> str:
        """Return the address that e-mails are from: the first recipient's unless one is given."""
        return self.email_from or next(iter(self.email), "")

    def send(self, trend: Trend, say: Say) -> None:
        """Send the news. OutsideError if a recipient can't be reached.

        The webhook comes last, because its message can't be taken back. After a failure, the
        issues that were written are found again, and a mailbox can recognise the same e-mail.
        """
        if self.openmetrics is not None and self.openmetrics != STANDARD_OUTPUT:
            from perfci.report.trend import render_openmetrics

            with writing(self.openmetrics):
                write_file(self.openmetrics, render_openmetrics(trend))
        if self.github_issue:
            self._write_issues(trend, say)
        if self.email:
            self._send_mail(trend, say)
        if self.webhook:
            self._send_message(trend, say)

    def _write_issues(self, trend: Trend, say: Say) -> None:
        from perfci.forges.issues import tell_issues

        with closing(self._client()) as client:
            outcomes = tell_issues(client, trend, self.issue_author, report_url=self.report_url)
        for outcome in outcomes:
            refused = outcome.kind == "refused"
            before = "issue not written, the token may not: " if refused else ""
            say(before + outcome.text, err=refused)

    def _send_mail(self, trend: Trend, say: Say) -> None:
        from perfci.forges.plain_news import mail_of, mail_server, send_mail

        message = mail_of(trend, self.sender, self.email, self.report_url)
        if message is None:
            return
        for refused in send_mail(mail_server(self.smtp), message):
            say(f"perfci: the mail server refused {refused}", err=True)
        say(f"sent the news to {first_of(self.email, 3)}")

    def _send_message(self, trend: Trend, say: Say) -> None:
        from perfci.forges.plain_news import is_teams, teams_body
        from perfci.forges.webhook import MaybeDelivered, send, webhook_body

        form = self.webhook_format or ("teams" if is_teams(self.webhook) else "slack")
        body = (teams_body if form == "teams" else webhook_body)(trend, report_url=self.report_url)
        if body is None:
            return
        try:
            send(self.webhook, body)
        except MaybeDelivered as unsure:  # it may have arrived, so it is not sent again
            say(f"perfci: {unsure.message}. {unsure.advice}", err=True)
        else:
            say("sent the news to the webhook")

    def _client(self) -> GitHubClient:
        return actions.client(self.repository, self.most_wait_s, "issues: write")
