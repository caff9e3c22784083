"""``perfci merge``: shards' reports to one, decided anew."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.cli.options import Outputs, config_option, configuration, strict_option
from perfci.cli.printing import say
from perfci.compare.sharding import MOST_SHARDS
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, EXIT_REGRESSION, DamagedFile, OutsideError

if TYPE_CHECKING:
    from perfci.compare.merging import Merged

_FILE = click.Path(dir_okay=False, path_type=Path)
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")


@click.command(
    "merge",
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
@click.option("--json", "json_path", type=_FILE, required=True, help="Write the report here.")
@click.option("--markdown", "markdown_path", type=_FILE, help="Write the comment here.")
@click.option("--junit", "junit_path", type=_FILE, help="Write JUnit XML here.")
@click.option("--csv", "csv_path", type=_FILE, help="Write the table of results here.")
@strict_option
@config_option
def command(
    files: tuple[Path, ...],
    expect: int | None,
    json_path: Path,
    markdown_path: Path | None,
    junit_path: Path | None,
    csv_path: Path | None,
    strict: bool | None,
    config_path: Path | None,
) -> int:
    """Join the reports of shards in FILES to one report for each environment.

    All their comparisons are corrected for together and decided with this folder's configuration:
    what a shard said by itself doesn't count. Prints the JSON files that it wrote, a line each;
    of several environments, each has its key before the file's suffix.
    """
    from perfci.cli.output import check_writable, exit_code, rendered, write_files
    from perfci.cli.report import load_report
    from perfci.cli.surroundings import root_here
    from perfci.compare.merging import merge
    from perfci.render.clean import clean_line
    from perfci.render.outline import headline

    asked = Outputs(json_path, markdown_path, junit_path, csv_path, log_dir=None)
    policy = configuration(root_here(), config_path, strict=strict).policy
    named = [(str(file), load_report(file)) for file in files]
    merged = merge(named, policy, expect=expect)
    outputs = [asked if len(merged) == 1 else _of_environment(asked, one) for one in merged]
    for chosen in outputs:
        check_writable(chosen)
    # all before the first is written: no environment's report is there without the others'
    texts = [rendered(one.report, chosen) for one, chosen in zip(merged, outputs, strict=True)]
    codes = []
    problems = []
    for one, chosen, text in zip(merged, outputs, texts, strict=True):
        try:
            write_files(text)
            say(str(chosen.json))
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
    return _worst(codes)


def _of_environment(asked: Outputs, merged: Merged) -> Outputs:
    """Name the environment in each file's name. A key that no perfci made is not made a path."""
    key = merged.report.environment.key
    if not _KEY.fullmatch(key):
        raise DamagedFile(
            "damaged-report",
            f"a report's environment has a key that perfci doesn't make: {key!r}",
            "Write the report again with --json.",
        )
    return Outputs(
        json=_keyed(asked.json, key),
        markdown=_keyed(asked.markdown, key),
        junit=_keyed(asked.junit, key),
        csv=_keyed(asked.csv, key),
        log_dir=None,
    )


def _keyed(path: Path | None, key: str) -> Path | None:
    return path and path.with_name(f"{path.stem}.{key}{path.suffix}")


def _worst(codes: Sequence[int]) -> int:
    """A regression in one environment is a regression, whatever is unknown in others."""
    return EXIT_REGRESSION if EXIT_REGRESSION in codes else max(codes)
