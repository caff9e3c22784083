"""``perfci list``: the cases that would be measured."""

from __future__ import annotations

from pathlib import Path

import click

from perfci.cli.caller import allow_token_option
from perfci.cli.options import config_option, python_option, select_option
from perfci.cli.printing import is_terminal, say, say_red
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS


@click.command("list", epilog="Example: perfci list -k 'encoder and not slow'")
@click.argument("rev", default=".")
@config_option
@select_option
@python_option
@allow_token_option
def command(rev: str, config_path: Path | None, selection: str, python: str | None) -> int:
    """List the cases of REV (default: the working tree), a line each: id, place, tags, skips."""
    from perfci.app.project import open_project
    from perfci.app.run import list_cases
    from perfci.cli.caller import calling
    from perfci.render.clean import clean_line

    with calling(quiet=not is_terminal(err=True)) as caller:
        project = open_project(caller, config_path)
        head = project.side("head", rev, python)
        cases, failed, notes = list_cases(project.surroundings(), head, selection)
    width = max((len(clean_line(case.id)) for case in cases), default=0)
    for case in cases:
        place = clean_line(f"{case.file}:{case.line}" if case.line else case.file)
        tags = "".join(f"  #{clean_line(tag)}" for tag in case.tags)
        skip = f"  (skipped: {clean_line(case.skip)})" if case.skip else ""
        say(f"{clean_line(case.id):<{width}}  {place}{tags}{skip}")
    for note in notes:
        say(clean_line(note, 500), err=True)
    for line in failed:
        say_red(f"failed: {clean_line(line, 2000)}")
    return EXIT_NO_VERDICT if failed else EXIT_PASS
