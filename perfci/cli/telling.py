"""What ``perfci trend`` tells others: OpenMetrics for Prometheus, issues, a webhook's message."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perfci.cli import actions
from perfci.cli.options import duration
from perfci.cli.output import unwritable
from perfci.cli.printing import say
from perfci.errors import UsageError
from perfci.files import require_writable, write_file

if TYPE_CHECKING:
    from perfci.publish.github.issue_posting import IssueClient
    from perfci.trend.change import Trend

F = TypeVar("F", bound=Callable[..., Any])
_ADDRESS = re.compile(r"https?://[A-Za-z0-9][^\s()<>|`\"\\]{0,1000}")
_OPTIONS = (
    click.option(
        "--openmetrics",
        "openmetrics_path",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write the latest values and statuses for Prometheus.",
    ),
    click.option(
        "--webhook",
        envvar="PERFCI_WEBHOOK",
        metavar="URL",
        help="Send new change points there, as Slack's JSON (default: $PERFCI_WEBHOOK; a secret).",
    ),
    click.option(
        "--github-issue", is_flag=True, help="Open or update an issue for each new regression."
    ),
    click.option(
        "--repository",
        envvar="GITHUB_REPOSITORY",
        metavar="OWNER/NAME",
        help="Where the issues are (default: $GITHUB_REPOSITORY).",
    ),
    click.option(
        "--issue-author",
        default="github-actions[bot]",
        show_default=True,
        help="Whom the token writes as: no other's issue is touched.",
    ),
    click.option(
        "--report-url",
        default="",
        metavar="URL",
        help="Where the report can be seen, to be linked (default: this run of Actions).",
    ),
    click.option(
        "--patience",
        type=duration,
        default=120.0,
        metavar="TIME",
        help="Longest wait for GitHub [default: 2m].",
    ),
)


def telling_options(function: F) -> F:
    """Add the options that ``Telling.of`` takes."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class Telling:
    """Who is to be told, and how. ``webhook`` is a secret; it is empty where none was given."""

    openmetrics: Path | None
    webhook: str
    github_issue: bool
    repository: str | None
    issue_author: str
    report_url: str
    patience: float

    @classmethod
    def of(cls, options: dict[str, Any]) -> Telling:
        """Take the options of ``telling_options`` out of a command's ``options``."""
        return cls(
            openmetrics=options.pop("openmetrics_path"),
            webhook=(options.pop("webhook") or "").strip(),
            github_issue=options.pop("github_issue"),
            repository=options.pop("repository"),
            issue_author=options.pop("issue_author"),
            report_url=options.pop("report_url") or actions.run_url(),
            patience=options.pop("patience"),
        )

    def files(self) -> dict[str, Path]:
        """Return the files that are written, by their options."""
        return {"--openmetrics": self.openmetrics} if self.openmetrics is not None else {}

    def check(self, *, remember: bool = True) -> None:
        """Fail before anything is read where it could not be told afterwards.

        Without ``remember``, what is new would be new again, and told again, each time.
        """
        if not remember and (self.webhook or self.github_issue):
            raise UsageError(
                "told-twice",
                "--no-remember is given with --webhook or --github-issue",
                "What isn't remembered would be told each time. Leave one of them out "
                "(PERFCI_WEBHOOK= switches the webhook off).",
            )
        if self.report_url and not _ADDRESS.fullmatch(self.report_url):
            raise UsageError(
                "bad-address",
                f"--report-url is {self.report_url!r}, no address that can be linked",
                "Give it as in https://example.org/report, without blanks and brackets.",
            )
        if self.webhook:
            from perfci.publish.webhook import require_webhook

            require_webhook(self.webhook)
        if self.github_issue:
            self._client().close()
        if self.openmetrics is not None:
            _tried(require_writable, self.openmetrics)

    def tell(self, trend: Trend) -> None:
        """Tell all who are to be told. OutsideError where one can't be: then remember nothing.

        The webhook comes last: its message can't be taken back, and issues are found again.
        """
        if self.openmetrics is not None:
            from perfci.render.openmetrics import render_openmetrics

            _tried(write_file, self.openmetrics, render_openmetrics(trend))
        if self.github_issue:
            self._tell_issues(trend)
        if self.webhook:
            self._tell_webhook(trend)

    def _tell_issues(self, trend: Trend) -> None:
        from perfci.publish.github.issue_posting import tell_issues

        with closing(self._client()) as client:
            outcomes = tell_issues(client, trend, self.issue_author, report_url=self.report_url)
        for outcome in outcomes:
            refused = outcome.kind == "refused"
            before = "issue not written, the token may not: " if refused else ""
            say(before + outcome.text, err=refused)

    def _tell_webhook(self, trend: Trend) -> None:
        from perfci.publish.webhook import MaybeDelivered, send
        from perfci.render.webhook_message import webhook_body

        body = webhook_body(trend, report_url=self.report_url)
        if body is None:
            return
        try:
            send(self.webhook, body)
        except MaybeDelivered as unsure:  # told, and not again
            say(f"perfci: {unsure.message}. {unsure.advice}", err=True)
        else:
            say("webhook told of what is new")

    def _client(self) -> IssueClient:
        return actions.issue_client(self.repository, self.patience)


def _tried(do: Callable[..., None], path: Path, *arguments: str) -> None:
    """Do something with a file, or say that it can't be written."""
    try:
        do(path, *arguments)
    except OSError as error:
        raise unwritable(path, error) from error
