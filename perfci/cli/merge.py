"""``perfci merge``: shards' reports to one, decided anew."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.cli.exporting import ExportingCommand
from perfci.cli.options import config_option, strict_option
from perfci.cli.printing import say
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, DamagedFile, OutsideError
from perfci.verdict.shards import MOST_SHARDS

if TYPE_CHECKING:
    from perfci.verdict.merge import Merged

_FILE = click.Path(dir_okay=False, path_type=Path)
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")


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

    All their comparisons are corrected for together and decided with this folder's configuration:
    what a shard said by itself doesn't count. Prints the JSON files that it wrote, a line each
    (`-` prints the report itself); of several environments, each has its key before the file's
    suffix.
    """
    from perfci.app.outputs import STANDARD_OUTPUT, check_writable, rendered, write_files
    from perfci.app.project import configuration
    from perfci.app.reports import load_report
    from perfci.cli.calling import root_here
    from perfci.cli.output import exit_code, show_texts, shown_as, worst_code
    from perfci.render.clean import clean_line
    from perfci.render.outline import headline
    from perfci.verdict.merge import merge

    policy = configuration(root_here(), config_path, strict=strict).policy
    named = [(str(file), load_report(file)) for file in files]
    merged = merge(named, policy, expect=expect)
    each = [outputs if len(merged) == 1 else _of_environment(outputs, one) for one in merged]
    for chosen in each:
        check_writable(chosen)
    # all before the first is written: no environment's report is there without the others'
    texts = [rendered(one.report, chosen) for one, chosen in zip(merged, each, strict=True)]
    codes = []
    problems = []
    for one, chosen, text in zip(merged, each, texts, strict=True):
        try:
            write_files({path: one for path, one in text.items() if path != STANDARD_OUTPUT})
            show_texts(
                shown_as(name, text[path])
                for name, path in chosen.items()
                if path == STANDARD_OUTPUT
            )
            if STANDARD_OUTPUT not in text:
                say(str(chosen["json"]))
        except OutsideError as problem:
            problems.append(problem)
        said = f"{one.report.verdict.status}: {headline(one.report)}"
        say(f"perfci: {clean_line(said, 600)}", err=True)
        code = exit_code(one.report, strict=policy.strict)
        codes.append(EXIT_NO_VERDICT if one.missing and code == EXIT_PASS else code)
    if problems:
        raise OutsideError(
            problems[0].slug, "; ".join(one.message for one in problems), problems[0].advice
        )
    return worst_code(codes)


def _of_environment(outputs: Mapping[str, Path], merged: Merged) -> dict[str, Path]:
    """Name the environment in each file's name. A key that no perfci made is not made a path."""
    from perfci.app.outputs import STANDARD_OUTPUT, files_of

    key = merged.report.environment.key
    if not _KEY.fullmatch(key):
        raise DamagedFile(
            "damaged-report",
            f"a report's environment has a key that perfci doesn't make: {key!r}",
            "Write the report again with --json.",
        )
    return {
        name: path.with_name(f"{path.stem}.{key}{path.suffix}")
        for name, path in files_of(outputs).items()
    } | {name: path for name, path in outputs.items() if path == STANDARD_OUTPUT}
