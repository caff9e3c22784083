"""``perfci explain``: what differs inside of a case, operator by operator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from perfci.cli.caller import allow_token_option
from perfci.cli.options import (
    config_option,
    duration,
    python_option,
    refs,
    refs_or_files,
    select_option,
)
from perfci.cli.printing import say
from perfci.errors import EXIT_PASS

_UNMEASURED = (
    "perfci: nothing was measured, so times that differ by less than twice are left out: "
    "`perfci compare` measures them, and says why a case moved."
)


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
    help="Time for the instruments of a case, beside its own run time.",
)
@click.option(
    "--trace",
    "traces",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write Chrome traces of both sides, which Perfetto opens.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def command(
    report_or_base: str,
    head: str,
    selection: str,
    config_path: Path | None,
    python: str | None,
    within_s: float,
    traces: Path | None,
    quiet: bool,
) -> int:
    """Look for what differs inside of cases, between BASE and HEAD or the sides of a REPORT.

    Both sides run again, in fresh processes under instruments; nothing is measured and no verdict
    given. Of a report, only cases that moved are looked at. HEAD defaults to the working tree.
    """
    from perfci.cli.caller import calling
    from perfci.commands.explain import ExplainRequest, explain, of_report
    from perfci.commands.project import open_project
    from perfci.report.rows import why_lines

    path = Path(report_or_base)
    if not head and path.is_file():
        request = of_report(path, selection, python, within_s)
    else:
        request = ExplainRequest(report_or_base, head or ".", selection, python, within_s)
    request = replace(request, traces=traces)
    with calling(quiet=quiet) as caller:
        found = explain(open_project(caller, config_path), request)
    for why in found:
        say(why.case)
        for line in why_lines(why):
            say(f"  {line}")
    if request.rows is None and not all(why.differences for why in found):
        say(_UNMEASURED, err=True)
    return EXIT_PASS
