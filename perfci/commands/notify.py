"""Who is notified of a trend: Prometheus by a file, GitHub by issues, a chat by its webhook."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.errors import UsageError
from perfci.files import require_writable, write_file
from perfci.forges.github import step
from perfci.notices import Say
from perfci.outputs import STANDARD_OUTPUT, unwritable

if TYPE_CHECKING:
    from perfci.forges.github.issues import IssueClient
    from perfci.trend.change import Trend

_ADDRESS = re.compile(r"https?://[A-Za-z0-9][^\s()<>|`\"\\]{0,1000}")


@dataclass(frozen=True, slots=True)
class Notifications:
    """Who is notified, and how. ``webhook`` is a secret; it is empty where none was given.

    ``most_wait_s`` bounds all waits for GitHub. ``report_url`` is linked.
    An ``openmetrics`` of ``-`` is the caller's to show.
    """

    openmetrics: Path | None = None
    webhook: str = ""
    github_issue: bool = False
    repository: str | None = None
    issue_author: str = "github-actions[bot]"
    report_url: str = ""
    most_wait_s: float = 120.0

    def files(self) -> dict[str, Path]:
        """Return the files that are written, by their options."""
        return {"--openmetrics": self.openmetrics} if self.openmetrics is not None else {}

    def check(self, *, remember: bool = True) -> None:
        """Fail before anything is read where nobody could be notified afterwards.

        Without ``remember``, what is new would be new again, and sent again, each time.
        """
        if not remember and (self.webhook or self.github_issue):
            raise UsageError(
                "notified-twice",
                "--no-remember is given with --webhook or --github-issue",
                "What is not remembered would be sent each time. Leave one of them out "
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
        if self.github_issue:
            self._client().close()
        if self.openmetrics not in {None, STANDARD_OUTPUT}:
            _tried(require_writable, self.openmetrics)

    def send(self, trend: Trend, say: Say) -> None:
        """Notify everybody. OutsideError where one can't be reached: then remember nothing.

        The webhook comes last: its message can't be taken back, and issues are found again.
        """
        if self.openmetrics not in {None, STANDARD_OUTPUT}:
            from perfci.report.openmetrics import render_openmetrics

            _tried(write_file, self.openmetrics, render_openmetrics(trend))
        if self.github_issue:
            self._write_issues(trend, say)
        if self.webhook:
            self._send_message(trend, say)

    def _write_issues(self, trend: Trend, say: Say) -> None:
        from perfci.forges.github.issues import tell_issues

        with closing(self._client()) as client:
            outcomes = tell_issues(client, trend, self.issue_author, report_url=self.report_url)
        for outcome in outcomes:
            refused = outcome.kind == "refused"
            before = "issue not written, the token may not: " if refused else ""
            say(before + outcome.text, err=refused)

    def _send_message(self, trend: Trend, say: Say) -> None:
        from perfci.forges.webhook import MaybeDelivered, send, webhook_body

        body = webhook_body(trend, report_url=self.report_url)
        if body is None:
            return
        try:
            send(self.webhook, body)
        except MaybeDelivered as unsure:  # it may have arrived: not sent again
            say(f"perfci: {unsure.message}. {unsure.advice}", err=True)
        else:
            say("sent what is new to the webhook")

    def _client(self) -> IssueClient:
        return step.issue_client(self.repository, self.most_wait_s)


def _tried(do: Callable[..., None], path: Path, *arguments: str) -> None:
    """Do something with a file, or say that it can't be written."""
    try:
        do(path, *arguments)
    except OSError as error:
        raise unwritable(path, error) from error
