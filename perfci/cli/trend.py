"""``perfci trend``: what the history says, as a site, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perfci.cli.options import config_option, duration, history_option, refs
from perfci.cli.printing import is_quiet, say, show

if TYPE_CHECKING:
    from perfci.commands.trend import Notifications
    from perfci.trend.change import Trend

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
_OPTIONS = (
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
        "most_wait_s",
        type=duration,
        default=120.0,
        metavar="TIME",
        help="Longest wait for GitHub [default: 2m].",
    ),
)


def notification_options(function: F) -> F:
    """Add the options that ``notifications_of`` takes."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def notifications_of(**given: Any) -> Notifications:
    """Return whom the options of ``notification_options`` notify."""
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
    help="Whose commits (default: the default branch).",
)
@click.option("--html", type=_FOLDER, metavar="DIR", help="Write a site that opens from disk.")
@click.option("--markdown", type=_FILE, help="Write a summary, for a job or an issue.")
@click.option("--json", "json_path", type=_FILE, help="Write all of it for programs.")
@click.option(
    "--last-days",
    type=click.IntRange(2, 3650),
    metavar="N",
    help="Look for slow drift in the last N days (default: drift_days of the configuration, 14).",
)
@click.option("--no-remember", is_flag=True, help="What is new now stays new for the next report.")
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
    """Say when, by how much, and between which commits each metric moved.

    New is what no earlier `perfci trend` reported: the history remembers it.
    """
    paths = {"json": json_path, "markdown": markdown}
    outputs = {name: path for name, path in paths.items() if path is not None}
    notifications = notifications_of(**given)
    from datetime import UTC, datetime

    from perfci.commands.project import history_files, history_place, repository_at
    from perfci.commands.trend import TrendRequest, report_trend, trend_text
    from perfci.config.loading import load_config
    from perfci.outputs import STANDARD_OUTPUT
    from perfci.report.trend import trend_lines

    repository = repository_at(Path.cwd())
    root = repository.root if repository else Path.cwd()
    config = load_config(root, config_path)
    _check_places(outputs, html, notifications, history_files(history, config, root))
    notifications.check(remember=not no_remember)
    request = TrendRequest(
        place=history_place(history, config, root, say),
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


def _check_places(
    outputs: Mapping[str, Path],
    html: Path | None,
    notifications: Notifications,
    history: Sequence[Path],
) -> None:
    """Fail before the history is read where something can't be written, or two places are one."""
    from perfci.outputs import check_replaceable, check_writable, require_distinct

    written = {**{f"--{name}": path for name, path in outputs.items()}, **notifications.files()}
    require_distinct(written, history, {"--html": html} if html is not None else {})
    if html is not None:
        check_replaceable(html)
    check_writable(outputs)
