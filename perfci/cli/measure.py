"""``perfci compare``, ``check`` and ``run``, and ``list``, which shows the cases they measure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from perfci.cli.options import (
    FOLDER,
    allow_token_option,
    config_option,
    inject_option,
    measuring_options,
    opened_project,
    python_option,
    record_options,
    select_option,
    shard_option,
    showing_options,
    strict_option,
)
from perfci.cli.printing import is_quiet, is_terminal, say, say_red, show
from perfci.cli.report import ExportingCommand, conclude
from perfci.cli.shards import ShardedCommand, slurm_options
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS
from perfci.model.case import Case
from perfci.report.clean import clean_json, clean_line, clean_lines


@click.command(
    "compare",
    cls=ShardedCommand,
    epilog="Example: perfci compare main HEAD -k encoder --markdown comment.md\n\n"
    "Exit codes: 0 no regression was found (also inconclusive), 1 regression, 2 usage, "
    "3 no trustworthy verdict, 4 git, disk or database.",
)
@click.argument("base")
@click.argument("head", default=".")
@measuring_options
@python_option
@click.option("--base-python", metavar="PATH", help="Another Python that runs base.")
@click.option("--head-python", metavar="PATH", help="Another Python that runs head.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Measure cases that ran no changed file like any other case.",
)
@click.option(
    "--allow-same-commit",
    "same",
    is_flag=True,
    help="Measure although both sides are one commit (an A/A); `calibrate` shows more.",
)
@click.option(
    "--benchmarks-of", metavar="REV", help="Run the benchmark files of REV (default: HEAD's)."
)
@click.option(
    "--keep-bursts",
    metavar="FOLDER",
    type=FOLDER,
    help="Measure all rounds of each case, and write them to a file in FOLDER.",
)
@shard_option
@slurm_options
@inject_option
@strict_option
@record_options
@showing_options
def compare_command(
    base: str, head: str, benchmarks_of: str | None, verbose: bool, **given: Any
) -> int:
    """Measure BASE and HEAD side by side and decide whether HEAD got worse.

    BASE and HEAD are git revisions. HEAD defaults to `.`, the working tree with its uncommitted
    changes. `A...B` for BASE is where A and B parted, with B as HEAD. Your checkout is not touched.
    """
    from perfci.commands.compare import MeasureOptions
    from perfci.commands.revisions import compare_revisions

    options = MeasureOptions(**given)
    with opened_project() as project:
        measured = compare_revisions(project, base, head, options, benchmarks_of=benchmarks_of)
    return conclude(measured, options.outputs, project.config, verbose=verbose)


@click.command(
    "check",
    cls=ShardedCommand,
    epilog="Example: perfci check --markdown comment.md --json report.json",
)
@click.argument("head", default=".")
@measuring_options
@python_option
@click.option("--no-confirm", is_flag=True, help="Measure HEAD alone, and fail on a suspicion.")
@click.option(
    "--if-stored",
    is_flag=True,
    help="Exit with 0 and a notice if no baseline is stored, instead of 2.",
)
@shard_option
@slurm_options
@inject_option
@strict_option
@record_options
@showing_options
def check_command(head: str, no_confirm: bool, if_stored: bool, verbose: bool, **given: Any) -> int:
    """Measure HEAD (default: the working tree) and decide against the stored baseline.

    A few cases are measured in pairs with the baseline's commit, which shows how much this machine
    differs today, and so is each case that the stored numbers don't decide.
    """
    from perfci.commands.check import NoBaseline
    from perfci.commands.compare import MeasureOptions
    from perfci.commands.revisions import check_revision

    options = MeasureOptions(**given)
    try:
        with opened_project() as project:
            measured = check_revision(project, head, options, confirm=not no_confirm)
    except NoBaseline as nothing:
        if not if_stored:
            raise
        show(clean_lines(f"perfci: not checked: {nothing.message}\n"), err=True)
        return EXIT_PASS
    return conclude(measured, options.outputs, project.config, verbose=verbose)


@click.command(
    "run", cls=ExportingCommand, epilog="Example: perfci run HEAD -k encoder --json run.json"
)
@click.argument("rev", default=".")
@measuring_options
@python_option
@record_options
@showing_options
def run_command(rev: str, verbose: bool, **given: Any) -> int:
    """Measure REV (default: the working tree) alone and show its numbers."""
    from perfci.commands.compare import MeasureOptions
    from perfci.commands.revisions import run_revision

    options = MeasureOptions(**given)
    with opened_project() as project:
        measured = run_revision(project, rev, options)
    return conclude(measured, options.outputs, project.config, verbose=verbose)


@click.command("list", epilog="Example: perfci list -k 'encoder and not slow'")
@click.argument("rev", default=".")
@config_option
@select_option
@python_option
@click.option("--json", "as_json", is_flag=True, help="Print the cases as JSON.")
@allow_token_option
def list_command(rev: str, selection: str, *, as_json: bool) -> int:
    """List the cases of REV (default: the working tree), one per line: id, place, tags, skips.

    With -q, print only the ids.
    """
    from perfci.commands.compare import list_cases

    with opened_project(quiet=not is_terminal(err=True)) as project:
        head = project.side("head", rev)
        cases, failed, notes = list_cases(project.session_context(), head, selection)
    if as_json:
        listed = {"cases": [_case_data(case) for case in cases], "failures": list(failed)}
        show(clean_json(json.dumps(listed, indent=2) + "\n"))
    elif is_quiet():
        for case in cases:
            say(clean_line(case.id))
    else:
        _show_cases(cases)
    for note in notes:
        say(clean_line(note, 500), err=True)
    for line in failed:
        say_red(f"failed: {clean_line(line, 2000)}")
    return EXIT_NO_VERDICT if failed else EXIT_PASS


def _case_data(case: Case) -> dict[str, object]:
    return {
        "id": case.id,
        "benchmark": case.benchmark,
        "file": case.file,
        "line": case.line,
        "tags": list(case.tags),
        "skip": case.skip or None,
    }


def _show_cases(cases: Sequence[Case]) -> None:
    width = max((len(clean_line(case.id)) for case in cases), default=0)
    for case in cases:
        source = clean_line(f"{case.file}:{case.line}" if case.line else case.file)
        tags = "".join(f"  #{clean_line(tag)}" for tag in case.tags)
        skip = f"  (skipped: {clean_line(case.skip)})" if case.skip else ""
        say(f"{clean_line(case.id):<{width}}  {source}{tags}{skip}")
