"""``perfci trend``, ``bisect`` and ``explain``: when a metric moved, by which commit, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from perfci.cli.options import (
    FILE,
    FOLDER,
    allow_token_option,
    command_budget_option,
    config_option,
    configuration_here,
    duration,
    history_option,
    opened_project,
    python_option,
    select_option,
    share,
)
from perfci.cli.printing import is_quiet, say, show
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS
from perfci.outputs import STANDARD_OUTPUT, check_writable, require_own_site, write_files

_UNMEASURED = (
    "perfci: nothing was measured, so times that differ by less than twice are left out: "
    "`perfci compare` measures them, and says why a case moved."
)


@click.command("trend", epilog="Example: perfci trend --html site --markdown trend.md")
@history_option
@click.option(
    "--branch", metavar="NAME", help="The branch of the commits (default: the default branch)."
)
@click.option("--html", type=FOLDER, metavar="DIR", help="Write a site that opens from disk.")
@click.option("--markdown", type=FILE, help="Write a summary, for a job or an issue.")
@click.option("--json", "json_path", type=FILE, help="Write all results for programs.")
@click.option("--no-remember", is_flag=True, help="Report the new changes as new again next time.")
@config_option
def trend_command(
    branch: str | None,
    html: Path | None,
    markdown: Path | None,
    json_path: Path | None,
    no_remember: bool,
) -> None:
    """Show when, by how much, and between which commits each metric moved.

    A change is new if no earlier `perfci trend` reported it. The history remembers that.
    """
    from datetime import UTC, datetime

    from perfci.commands.history import history_address, history_files
    from perfci.commands.project import repository_at
    from perfci.commands.trend import report_trend, trend_text
    from perfci.report.site.pages import trend_lines

    paths = {"json": json_path, "markdown": markdown}
    outputs = {name: path for name, path in paths.items() if path is not None}
    repository = repository_at(Path.cwd())
    root, config = configuration_here()
    # before the history is read, which may take a minute
    check_writable(outputs, history_files(config, root))
    if html is not None:
        require_own_site(html)
    trend = report_trend(
        history_address(config, root),
        config,
        repository,
        now=datetime.now(UTC).isoformat(timespec="seconds"),  # noqa: TID251 (the one clock here)
        branch=branch,
        html=html,
        outputs=outputs,
        remember=not no_remember,
    )
    printed = [name for name, path in outputs.items() if path == STANDARD_OUTPUT]
    for line in trend_lines(trend):
        say(line, err=bool(printed))
    if html and not is_quiet():
        say(f"open {html / 'index.html'}", err=bool(printed))
    for name in printed:
        show(trend_text(name, trend))


@click.command(
    "bisect",
    epilog="Example: perfci bisect v1.2..main -k encoder --metric latency_p50\n\n"
    "Exit codes: 0 found (each change named has a probability of 95 % or more), 2 usage, 3 not "
    "found (nothing moved, or the time ended before), 4 git or disk.",
)
@click.argument("wanted", metavar="GOOD..BAD")
@config_option
@select_option
@click.option(
    "--metric", default="", help="The metric to search for (default: the one that moved most)."
)
@click.option(
    "--size",
    type=share,
    metavar="SHARE",
    help="With --metric: how far it moved, such as 2%, if that is less than 5%.",
)
@python_option
@allow_token_option
@command_budget_option
@click.option("--restart", is_flag=True, help="Forget the measurements of an earlier start.")
@click.option("--json", "json_path", type=FILE, help="Write the answer here.")
def bisect_command(wanted: str, json_path: Path | None, **given: Any) -> int:
    """Find the commits of a range at which one case's metric changed, for the worse or better.

    Commits are compared with GOOD until one has a probability of 95 %. Commits that can't be built
    or imported are skipped. Each comparison is kept, so the same command continues after a kill.
    `perfci trend` writes this command for each change.
    """
    from perfci.commands.bisect import BisectOptions, bisect
    from perfci.report.bisection import render_bisection, render_bisection_json

    options = BisectOptions(**given)
    with opened_project() as project:
        project.check_outputs({"json": json_path} if json_path else {})
        bisection = bisect(project, wanted, options)
    printed = json_path == STANDARD_OUTPUT
    if json_path and not printed:
        write_files({json_path: render_bisection_json(bisection)})
    for line in render_bisection(bisection):
        say(line, err=printed)
    if printed:
        show(render_bisection_json(bisection))
    return EXIT_PASS if bisection.is_answered else EXIT_NO_VERDICT


@click.command(
    "explain",
    epilog="Example: perfci explain main HEAD -k encoder\n\n"
    "Exit codes: 0 done, 2 usage, 3 no benchmark could be run, 4 git or disk.",
)
@click.argument("report_or_base", metavar="REPORT|BASE")
@click.argument("head", default="")
@select_option
@config_option
@python_option
@allow_token_option
@click.option(
    "--within",
    "within_s",
    type=duration,
    default="30s",
    show_default=True,
    help="Time for the instruments of a case, besides its own run time.",
)
def explain_command(report_or_base: str, head: str, **given: Any) -> int:
    """Find differences inside cases, between BASE and HEAD or the sides of a REPORT.

    Both sides run again, in fresh processes under instruments. Nothing is measured and no verdict
    is given. Of a report, only cases that moved are looked at. HEAD defaults to the working tree.
    """
    from perfci.commands.revisions import ExplainedSides, explain, sides_of_report
    from perfci.report.why import lines_of_why

    path = Path(report_or_base)
    if not head and path.is_file():
        sides = sides_of_report(path)
    else:
        sides = ExplainedSides(report_or_base, head or ".")
    with opened_project() as project:
        explained = explain(project, sides, **given)
    for why in explained:
        say(why.case)
        for line in lines_of_why(why):
            say(f"  {line}")
    if sides.rows is None and not all(why.differences for why in explained):
        say(_UNMEASURED, err=True)
    return EXIT_PASS
