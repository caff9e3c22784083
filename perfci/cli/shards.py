"""Shards: ``perfci merge``, and ``--slurm``, which measures and merges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.options import (
    FILE,
    FOLDER,
    OUTPUT,
    config_option,
    configuration_here,
    opened_project,
    stack,
    strict_option,
)
from perfci.cli.printing import say
from perfci.cli.report import ExportingCommand, exit_code, show_report, show_texts, worst_code
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS
from perfci.report.clean import clean_line
from perfci.verdict.shards import MOST_SHARDS

if TYPE_CHECKING:
    from perfci.commands.shards import MergedReport

_OWN_NAMES = ("shards", "sbatch", "folder")
"""The parameters of ``_SLURM_OPTIONS``, which are fields of ``SlurmOptions``."""
_NOT_FORWARDED = {
    *_OWN_NAMES, "shard", "benchmarks_of", "log_folder", "strict", "verbose",
    "quiet",
}  # fmt: skip
"""Options that are for the merging process, or are passed to each shard in another way."""
_SLURM_OPTIONS = stack(
    click.option(
        "--slurm",
        "shards",
        type=click.IntRange(1, MOST_SHARDS),
        metavar="N",
        help="Have Slurm measure N shards, and merge.",
    ),
    click.option(
        "--sbatch",
        multiple=True,
        metavar="WORDS",
        help='Options of sbatch for --slurm: "partition=gpu gres=gpu:1 exclusive".',
    ),
    click.option(
        "--job-dir",
        "folder",
        type=FOLDER,
        metavar="DIR",
        help="Where --slurm makes its job's folder (default: the cache folder).",
    ),
)
_WORDS = f"{__name__}.words"
"""The key of the command line's words in click's context."""


def slurm_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options of --slurm to a ``ShardedCommand``.

    With --slurm, shards are measured instead of calling ``function``.
    """

    @wraps(function)
    def either(**given: Any) -> int:
        own = {name: given.pop(name) for name in _OWN_NAMES}
        if own["shards"]:
            return _measure_by_slurm(own, click.get_current_context(), **given)
        if own["sbatch"] or own["folder"]:
            raise click.UsageError("--sbatch and --job-dir need --slurm")
        return function(**given)

    return _SLURM_OPTIONS(either)


def _forwarded(context: click.Context) -> tuple[str, ...]:
    """Return the options for each shard's command, as they were written."""
    parser = context.command.make_parser(context)
    written, _, order = parser.parse_args(list(context.meta[_WORDS]))
    words: list[str] = []
    for option in dict.fromkeys(order):
        name = str(option.name)
        own = name in _NOT_FORWARDED or name.startswith(OUTPUT)
        if own or not isinstance(option, click.Option):
            continue
        value = written[name]
        if option.is_flag:
            words.append(option.opts[0] if value else option.secondary_opts[0])
            continue
        for item in value if option.multiple else (value,):
            words += (option.opts[0], str(item))
    return tuple(words)


class ShardedCommand(ExportingCommand):
    """Keeps its words as they were written. With --slurm, each shard gets some of them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and keep the words."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)


def _measure_by_slurm(
    own: Mapping[str, Any],
    context: click.Context,
    *,
    head: str,
    outputs: Mapping[str, Path],
    verbose: bool,
    base: str | None = None,
    same: bool = False,
    benchmarks_of: str | None = None,
    **given: Any,
) -> int:
    """Have the shards measured, print the merged reports, and return the exit code."""
    from perfci.commands.shards import SlurmOptions, check_by_slurm, compare_by_slurm

    for name in ("shard", "if_stored"):
        if given.get(name):
            raise click.UsageError(f"--{name.replace('_', '-')} doesn't go with --slurm")
    options = SlurmOptions(**own, log_folder=given["log_folder"], command=_forwarded(context))
    with opened_project() as project:
        if base is None:
            reports = check_by_slurm(project, head, options, outputs)
        else:
            reports = compare_by_slurm(
                project, base, head, options, outputs, same=same, benchmarks_of=benchmarks_of
            )
    for merged in reports:
        show_report(merged.report, verbose=verbose, err=bool(merged.shown))
        show_texts(merged.shown)
    strict = project.config.policy.strict
    return worst_code(merged_code(merged, strict=strict) for merged in reports)


@click.command(
    "merge",
    cls=ExportingCommand,
    required="json",
    epilog="Example: perfci merge shards/*.json --expect 4 --json report.json\n\n"
    "Exit codes: as for compare; also 3 if a shard is missing.",
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option(
    "--expect",
    type=click.IntRange(1, MOST_SHARDS),
    metavar="N",
    help="Number of shards to expect (default: the number that their reports name).",
)
@strict_option
@config_option
def merge_command(files: tuple[Path, ...], expect: int | None, outputs: Mapping[str, Path]) -> int:
    """Join the reports of shards in FILES to one report for each environment.

    All their comparisons are corrected as one family and decided with this folder's configuration.
    The shards' own verdicts don't count. Prints the JSON files that it wrote, one per line, or with
    `-` the report itself. Of several environments, each has its key before the file's suffix.
    """
    from perfci.commands.shards import merge_reports
    from perfci.report.view import ReportView

    policy = configuration_here()[1].policy
    codes = []
    for merged in merge_reports(files, policy, outputs, expect=expect):
        show_texts(merged.shown)
        if not merged.shown:
            say(str(merged.outputs["json"]))
        verdict = f"{merged.report.verdict.status} — {ReportView(merged.report).headline}"
        say(f"perfci: {clean_line(verdict, 600)}", err=True)
        codes.append(merged_code(merged, strict=policy.strict))
    return worst_code(codes)


def merged_code(merged: MergedReport, *, strict: bool) -> int:
    """Return the exit code of a merged report, which never passes where it lacks a shard."""
    code = exit_code(merged.report, strict=strict)
    return EXIT_NO_VERDICT if merged.report.missing and code == EXIT_PASS else code
