"""``perfci bisect``: which commit of a range made a case slower, or faster."""

from __future__ import annotations

from pathlib import Path

import click

from perfci.cli.caller import allow_token_option
from perfci.cli.options import (
    config_option,
    duration,
    history_option,
    metrics,
    python_option,
    refs,
    select_option,
)
from perfci.cli.printing import say, show
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    "bisect",
    epilog="Example: perfci bisect v1.2..main -k encoder --metric latency_p50\n\n"
    "Exit codes: 0 found (each change named has a probability of 95 % or more), 2 usage, 3 not "
    "found (nothing moved, or the time ended before), 4 git or disk.",
)
@click.argument("wanted", metavar="GOOD..BAD|CHANGE-ID", shell_complete=refs)
@history_option
@config_option
@select_option
@click.option(
    "--metric",
    default="",
    shell_complete=metrics,
    help="Of this metric (default: the one that moved most).",
)
@click.option("--package", default="", help="GOOD..BAD are releases of this package, by pip.")
@python_option
@allow_token_option
@click.option(
    "--budget",
    "budget_s",
    type=duration,
    default="1h",
    show_default=True,
    help="Time for everything.",
)
@click.option("--seed", type=int, help="Of the order of sides and of the benchmarks' data.")
@click.option("--restart", is_flag=True, help="Forget what an earlier start measured.")
@click.option("--json", "json_path", type=_FILE, help="Write the answer here.")
@click.option("-q", "--quiet", is_flag=True, help="Show the answer only; no progress.")
def command(
    wanted: str,
    history: str | None,
    config_path: Path | None,
    selection: str,
    metric: str,
    package: str,
    python: str | None,
    budget_s: float,
    seed: int | None,
    restart: bool,
    json_path: Path | None,
    quiet: bool,
) -> int:
    """Find the commits of a range at which one case's metric changed, for the worse or better.

    Commits are compared with GOOD until one is known by 95 %; those that can't be built or
    imported are skipped. Each comparison is kept: start it again after a kill, and it goes on.
    CHANGE-ID is a change that `perfci trend` names: its case, its metric and its commits.
    With --package, the releases of a dependency are compared, each in an environment of its own.
    """
    from perfci.cli.caller import calling
    from perfci.commands.bisect.request import BisectRequest, bisect
    from perfci.commands.project import open_project
    from perfci.outputs import STANDARD_OUTPUT, write_files
    from perfci.report.bisection import render_bisection, render_bisection_json

    request = BisectRequest(
        wanted, selection, metric, python, budget_s, restart, quiet, history, package
    )
    with calling(quiet=quiet) as caller:
        project = open_project(caller, config_path, seed=seed)
        project.check_outputs({"json": json_path} if json_path else {})
        bisection = bisect(project, request)
    printed = json_path == STANDARD_OUTPUT
    if json_path and not printed:
        write_files({json_path: render_bisection_json(bisection)})
    for line in render_bisection(bisection):
        say(line, err=printed)
    if printed:
        show(render_bisection_json(bisection))
    return EXIT_PASS if bisection.is_answered else EXIT_NO_VERDICT
