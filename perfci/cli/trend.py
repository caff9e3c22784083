"""``perfci trend``: what the history says, as a site, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.options import config_option, history_option, history_place
from perfci.cli.printing import say
from perfci.cli.telling import Telling, telling_options

if TYPE_CHECKING:
    from perfci.trend.change import Trend
    from perfci.trend.timeline.series import Distributions

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command("trend", epilog="Example: perfci trend --html site --markdown trend.md")
@history_option
@click.option("--branch", metavar="NAME", help="Whose commits (default: the default branch).")
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
@telling_options
@config_option
def command(
    history: str | None,
    branch: str | None,
    html: Path | None,
    markdown: Path | None,
    json_path: Path | None,
    last_days: int | None,
    no_remember: bool,
    config_path: Path | None,
    **options: Any,
) -> None:
    """Say when, by how much, and between which commits each metric moved.

    New is what no earlier `perfci trend` told: the history remembers it.
    """
    asked = {"json": json_path, "markdown": markdown}
    outputs = {name: path for name, path in asked.items() if path is not None}
    telling = Telling.of(options)
    from dataclasses import replace
    from datetime import UTC, datetime

    from perfci.cli.branch_order import branch_order, repository_here
    from perfci.cli.output import check_writable, history_files, require_apart
    from perfci.cli.site_folder import check_replaceable
    from perfci.cli.trending import seen, trend_of, workers_of
    from perfci.config.loading import load_config
    from perfci.history.history import open_history
    from perfci.render.trend_text import trend_lines

    repository = repository_here()
    root = repository.root if repository else Path.cwd()
    config = load_config(root, config_path)
    written = {**{f"--{name}": path for name, path in outputs.items()}, **telling.files()}
    folders = {"--html": html} if html is not None else {}
    require_apart(written, history_files(history, config, root), folders)
    if html is not None:
        check_replaceable(html)
    check_writable(outputs)
    telling.check(remember=not no_remember)
    now = datetime.now(UTC).isoformat(timespec="seconds")  # noqa: TID251 (it is the one that reads the clock)
    settings = config.trend if last_days is None else replace(config.trend, drift_days=last_days)
    with open_history(history_place(history, config, root), create=False) as opened:
        loaded = opened.load()
        known = {run.night.sha for run in loaded.runs}
        told = branch_order(repository, branch, known)
        trend = trend_of(loaded, opened, told, config.aliases, now=now, settings=settings)
        del loaded
        workers = workers_of(trend, opened, config.aliases) if html else {}
        _write(trend, workers, outputs, html)
        for line in trend_lines(trend):
            say(line)
        if html:
            say(f"open {html / 'index.html'}")
        changes = seen(trend.changes, now)
        if not no_remember:  # what was told and is not remembered would be told again
            opened.try_remember(changes)
        telling.tell(trend)
        if not no_remember:  # last: what could not be told was not seen
            opened.remember(changes)


def _write(
    trend: Trend, workers: Distributions, outputs: Mapping[str, Path], html: Path | None
) -> None:
    from perfci.cli.output import write_files
    from perfci.cli.site_folder import replace_folder
    from perfci.render.site.pages import render_site
    from perfci.render.trend_json import trend_json
    from perfci.render.trend_text import render_trend_markdown

    renderers: dict[str, Callable[[Trend], str]] = {
        "markdown": render_trend_markdown,
        "json": trend_json,
    }
    texts = {path: renderers[name](trend) for name, path in outputs.items()}
    write_files(texts)
    if html is not None:
        replace_folder(html, render_site(trend, workers))
