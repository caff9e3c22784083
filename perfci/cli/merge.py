"""``perfci merge``: shards' reports to one, decided anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.cli.options import config_option, strict_option
from perfci.cli.output import ExportingCommand
from perfci.cli.printing import say
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, OutsideError
from perfci.verdict.shards import MOST_SHARDS

if TYPE_CHECKING:
    from perfci.commands.merge import MergedReport

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    "merge",
    cls=ExportingCommand,
    required="json",
    epilog="Example: perfci merge shards/*.json --expect 4 --json report.json\n\n"
    "Exit codes: those of compare; 3 also where a shard is missing.",
)
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option(
    "--expect",
    type=click.IntRange(1, MOST_SHARDS),
    metavar="N",
    help="How many shards there should be (default: as many as they say themselves).",
)
@strict_option
@config_option
def command(
    files: tuple[Path, ...],
    expect: int | None,
    strict: bool | None,
    config_path: Path | None,
    outputs: Mapping[str, Path],
) -> int:
    """Join the reports of shards in FILES to one report for each environment.

    All their comparisons are corrected as one family and decided with this folder's configuration:
    what a shard said by itself doesn't count. Prints the JSON files that it wrote, a line each
    (`-` prints the report itself); of several environments, each has its key before the file's
    suffix.
    """
    from perfci.cli.caller import root_here
    from perfci.cli.output import show_texts, shown_as, worst_code
    from perfci.commands.merge import merge_reports
    from perfci.commands.project import configuration
    from perfci.report.clean import clean_line
    from perfci.report.outline import headline

    policy = configuration(root_here(), config_path, strict=strict).policy
    codes = []
    problems = []
    for one in merge_reports(files, policy, outputs, expect=expect):
        show_texts(shown_as(name, text) for name, text in one.shown.items())
        if one.problem is not None:
            problems.append(one.problem)
        elif not one.shown:
            say(str(one.outputs["json"]))
        said = f"{one.report.verdict.status}: {headline(one.report)}"
        say(f"perfci: {clean_line(said, 600)}", err=True)
        codes.append(merged_code(one, strict=policy.strict))
    if problems:
        raise OutsideError(
            problems[0].slug, "; ".join(one.message for one in problems), problems[0].advice
        )
    return worst_code(codes)


def merged_code(one: MergedReport, *, strict: bool) -> int:
    """Return the exit code of a merged report: one that lacks a shard never passes."""
    from perfci.cli.output import exit_code

    code = exit_code(one.report, strict=strict)
    return EXIT_NO_VERDICT if one.incomplete and code == EXIT_PASS else code
