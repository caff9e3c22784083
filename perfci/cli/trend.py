"""``perfci trend``: the history analysed, as a site, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.options import config_option, duration, history_option, refs, stack
from perfci.cli.printing import is_quiet, say, show
from perfci.outputs import STANDARD_OUTPUT, check_replaceable, check_writable, require_distinct

if TYPE_CHECKING:
    from perfci.commands.trend import Notifications
    from perfci.trend import Trend

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
notification_options = stack(
    click.option(
        "--openmetrics",
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
        help="The repository of the issues (default: $GITHUB_REPOSITORY).",
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
        help="The address of the report, to be linked (default: this run of Actions).",
    ),
    click.option(
        "--patience",
        "most_wait_s",
        type=duration,
        default=120.0,
        metavar="TIME",
        help="Longest wait for GitHub [default: 2m].",
    ),
)


def notifications_of(**given: Any) -> Notifications:
    """Return the recipients that ``notification_options`` name."""
    from perfci.commands.trend import Notifications
    from perfci.forges import actions

    given["webhook"] = (given["webhook"] or "").strip()
    given["report_url"] = given["report_url"] or actions.run_url()
    return Notifications(**given)


@click.command("trend", epilog="Example: perfci trend --html site --markdown trend.md")
@history_option
@click.option(
    "--branch",
    metavar="NAME",
    shell_complete=refs,
    help="The branch of the commits (default: the default branch).",
)
@click.option("--html", type=_FOLDER, metavar="DIR", help="Write a site that opens from disk.")
@click.option("--markdown", type=_FILE, help="Write a summary, for a job or an issue.")
@click.option("--json", "json_path", type=_FILE, help="Write all results for programs.")
@click.option(
    "--last-days",
    type=click.IntRange(2, 3650),
    metavar="N",
    help="Look for slow drift in the last N days (default: drift_days of the configuration, 14).",
)
@click.option(
    "--no-remember", is_flag=True, help="Keep what is new now as new for the next report."
)
@notification_options
@config_option
def trend_command(
    history: str | None,
    branch: str | None,
    html: Path | None,
    markdown: Path | None,
    json_path: Path | None,
    last_days: int | None,
    no_remember: bool,
    config_path: Path | None,
    **given: Any,
) -> None:
    """Show when, by how much, and between which commits each metric moved.

    A change is new where no earlier `perfci trend` reported it. The history remembers that.
    """
    paths = {"json": json_path, "markdown": markdown}
    outputs = {name: path for name, path in paths.items() if path is not None}
    notifications = notifications_of(**given)
    from datetime import UTC, datetime

    from perfci.commands.project import history_address, history_files, repository_at
    from perfci.commands.trend import TrendRequest, report_trend, trend_text
    from perfci.config.loading import load_config
    from perfci.report.trend import trend_lines

    repository = repository_at(Path.cwd())
    root = repository.root if repository else Path.cwd()
    config = load_config(root, config_path)
    _check_outputs(outputs, html, notifications, history_files(history, config, root))
    notifications.check(remember=not no_remember)
    request = TrendRequest(
        address=history_address(history, config, root),
        now=datetime.now(UTC).isoformat(timespec="seconds"),  # noqa: TID251 (the one clock here)
        branch=branch,
        last_days=last_days,
        html=html,
        outputs=outputs,
        remember=not no_remember,
        notifications=notifications,
    )

    asked_for = {**outputs, "openmetrics": notifications.openmetrics}
    printed = [name for name, path in asked_for.items() if path == STANDARD_OUTPUT]

    def show_trend(trend: Trend) -> None:
        for line in trend_lines(trend):
            say(line, err=bool(printed))
        if html and not is_quiet():
            say(f"open {html / 'index.html'}", err=bool(printed))
        for name in printed:
            show(trend_text(name, trend))

    def say_besides(text: str, *, err: bool = False) -> None:
        say(text, err=err or bool(printed))

    report_trend(request, config, repository, written=show_trend, say=say_besides)


def _check_outputs(
    outputs: Mapping[str, Path],
    html: Path | None,
    notifications: Notifications,
    history: Sequence[Path],
) -> None:
    """Fail before the history is read where an output can't be written, or two are one file."""

    written = {**{f"--{name}": path for name, path in outputs.items()}, **notifications.files()}
    require_distinct(written, history, {"--html": html} if html is not None else {})
    if html is not None:
        check_replaceable(html)
    check_writable(outputs)
