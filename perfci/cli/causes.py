"""``perfci bisect`` and ``perfci explain``: which commit, and what in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from perfci.cli.caller import allow_token_option, calling
from perfci.cli.options import (
    config_option,
    duration,
    history_option,
    metrics,
    python_option,
    refs,
    refs_or_files,
    select_option,
)
from perfci.cli.printing import say, show
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS
from perfci.outputs import STANDARD_OUTPUT, write_files

_FILE = click.Path(dir_okay=False, path_type=Path)
_UNMEASURED = (
    "perfci: nothing was measured, so times that differ by less than twice are left out: "
    "`perfci compare` measures them, and says why a case moved."
)


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
    help="The metric to search for (default: the one that moved most).",
)
@click.option("--package", default="", help="Search GOOD..BAD of this package's releases, by pip.")
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
@click.option("--seed", type=int, help="Seed of the order of sides and of the benchmarks' data.")
@click.option("--restart", is_flag=True, help="Forget what an earlier start measured.")
@click.option("--json", "json_path", type=_FILE, help="Write the answer here.")
@click.option("-q", "--quiet", is_flag=True, help="Show the answer only; no progress.")
def bisect_command(
    wanted: str,
    config_path: Path | None,
    seed: int | None,
    json_path: Path | None,
    quiet: bool,
    **given: Any,
) -> int:
    """Find the commits of a range at which one case's metric changed, for the worse or better.

    Commits are compared with GOOD until one is known by 95 %. Commits that can't be built or
    imported are skipped. Each comparison is kept, so the same command continues after a kill.
    CHANGE-ID is a change that `perfci trend` names, with its case, its metric and its commits. With
    --package, the releases of a dependency are compared, each in an environment of its own.
    """
    from perfci.commands.bisect import bisect
    from perfci.commands.bisect_search import BisectOptions
    from perfci.commands.project import open_project
    from perfci.report.bisection import render_bisection, render_bisection_json

    options = BisectOptions(quiet=quiet, **given)
    with calling(quiet=quiet) as caller:
        project = open_project(caller, config_path, seed=seed)
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
@click.argument("report_or_base", metavar="REPORT|BASE", shell_complete=refs_or_files)
@click.argument("head", default="", shell_complete=refs)
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
@click.option(
    "--trace",
    "traces",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write Chrome traces of both sides, which Perfetto opens.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def explain_command(
    report_or_base: str,
    head: str,
    config_path: Path | None,
    traces: Path | None,
    quiet: bool,
    **given: Any,
) -> int:
    """Look for what differs inside of cases, between BASE and HEAD or the sides of a REPORT.

    Both sides run again, in fresh processes under instruments. Nothing is measured and no verdict
    is given. Of a report, only cases that moved are looked at. HEAD defaults to the working tree.
    """
    from perfci.commands.project import open_project
    from perfci.commands.revisions import ExplainRequest, explain, explain_report
    from perfci.report.rows import why_lines

    path = Path(report_or_base)
    if not head and path.is_file():
        request = explain_report(path, **given)
    else:
        request = ExplainRequest(report_or_base, head or ".", **given)
    request = replace(request, traces=traces)
    with calling(quiet=quiet) as caller:
        explained = explain(open_project(caller, config_path), request)
    for why in explained:
        say(why.case)
        for line in why_lines(why):
            say(f"  {line}")
    if request.rows is None and not all(why.differences for why in explained):
        say(_UNMEASURED, err=True)
    return EXIT_PASS
