"""``perfci list``: the cases that would be measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from perfci.cli.caller import allow_token_option
from perfci.cli.options import config_option, python_option, refs, select_option
from perfci.cli.printing import is_quiet, is_terminal, say, say_red, show
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS
from perfci.model.case import Case
from perfci.report.clean import clean_json, clean_line


@click.command("list", epilog="Example: perfci list -k 'encoder and not slow'")
@click.argument("rev", default=".", shell_complete=refs)
@config_option
@select_option
@python_option
@click.option("--json", "as_json", is_flag=True, help="Print the cases as JSON.")
@allow_token_option
def command(
    rev: str, config_path: Path | None, selection: str, python: str | None, *, as_json: bool
) -> int:
    """List the cases of REV (default: the working tree), a line each: id, place, tags, skips.

    With -q the ids alone.
    """
    from perfci.cli.caller import calling
    from perfci.commands.project import open_project
    from perfci.commands.run import list_cases

    with calling(quiet=not is_terminal(err=True)) as caller:
        project = open_project(caller, config_path)
        head = project.side("head", rev, python)
        cases, failed, notes = list_cases(project.surroundings(), head, selection)
    if as_json:
        listed = {"cases": [_described(case) for case in cases], "failures": list(failed)}
        show(clean_json(json.dumps(listed, indent=2) + "\n"))
    elif is_quiet():
        for case in cases:
            say(clean_line(case.id))
    else:
        _show_lines(cases)
    for note in notes:
        say(clean_line(note, 500), err=True)
    for line in failed:
        say_red(f"failed: {clean_line(line, 2000)}")
    return EXIT_NO_VERDICT if failed else EXIT_PASS


def _described(case: Case) -> dict[str, object]:
    return {
        "id": case.id,
        "benchmark": case.benchmark,
        "file": case.file,
        "line": case.line,
        "tags": list(case.tags),
        "skip": case.skip or None,
    }


def _show_lines(cases: Sequence[Case]) -> None:
    width = max((len(clean_line(case.id)) for case in cases), default=0)
    for case in cases:
        place = clean_line(f"{case.file}:{case.line}" if case.line else case.file)
        tags = "".join(f"  #{clean_line(tag)}" for tag in case.tags)
        skip = f"  (skipped: {clean_line(case.skip)})" if case.skip else ""
        say(f"{clean_line(case.id):<{width}}  {place}{tags}{skip}")
