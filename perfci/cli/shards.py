"""Shards: ``perfci merge``, and ``--engine slurm``, which measures and merges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.help import OUTPUT
from perfci.cli.options import (
    FILE,
    FOLDER,
    PROJECT_OPTIONS,
    calling,
    config_option,
    root_here,
    stack,
    strict_option,
)
from perfci.cli.printing import is_quiet, say
from perfci.cli.report import (
    ExportingCommand,
    exit_code,
    show_report,
    show_texts,
    shown_as,
    worst_code,
)
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, joined_error
from perfci.report.clean import clean_line
from perfci.verdict.shards import MOST_SHARDS

if TYPE_CHECKING:
    from perfci.commands.shards import EngineOptions, MergedReport

_OWN_NAMES = ("engine", "shards", "sbatch", "job_folder")
"""The parameters of ``_ENGINE_OPTIONS``."""
_NOT_FORWARDED = {
    *_OWN_NAMES, "shard", "benchmarks_of", "log_folder", "strict", "verbose",
    "quiet", "log_format",
}  # fmt: skip
"""Options that are for the merging process, or are passed to each shard in another way."""
_ENGINE_OPTIONS = stack(
    click.option(
        "--engine",
        type=click.Choice(["slurm"]),
        help="Have --shards measured by Slurm, and merge.",
    ),
    click.option(
        "--shards",
        type=click.IntRange(1, MOST_SHARDS),
        metavar="N",
        help="Number of shards that --engine measures.",
    ),
    click.option(
        "--sbatch",
        multiple=True,
        metavar="WORDS",
        help='Options of sbatch for --engine slurm: "partition=gpu gres=gpu:1 exclusive".',
    ),
    click.option(
        "--job-dir",
        "job_folder",
        type=FOLDER,
        metavar="DIR",
        help="Where --engine makes its job's folder (default: the cache folder).",
    ),
)
_WORDS = f"{__name__}.words"
"""The key of the command line's words in click's context."""


def engine_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the engine's options to a ``PartedCommand``.

    If any of them is given, shards are measured instead of calling ``function``.
    """

    @wraps(function)
    def either(**given: Any) -> int:
        own = {name: value for name in _OWN_NAMES if (value := given.pop(name))}
        if not own:
            return function(**given)
        return _measure_by_engine(_engine_options(own, given, click.get_current_context()), **given)

    return _ENGINE_OPTIONS(either)


def _engine_options(
    own: Mapping[str, Any], given: Mapping[str, Any], context: click.Context
) -> EngineOptions:
    from perfci.commands.shards import EngineOptions

    if {"engine", "shards"}.isdisjoint(own):
        needs = "--sbatch and --job-dir need --engine and --shards"
        raise click.UsageError(f"{needs}. Give both")
    if "engine" not in own or "shards" not in own:
        raise click.UsageError("--engine and --shards belong together. Give both")
    for name in ("shard", "last_failed", "if_stored"):
        if given.get(name):
            raise click.UsageError(f"--{name.replace('_', '-')} doesn't go with --engine")
    return EngineOptions(
        shards=own["shards"],
        sbatch=own.get("sbatch", ()),
        folder=own.get("job_folder"),
        log_folder=given["log_folder"],
        options=_forwarded(context),
    )


def _forwarded(context: click.Context) -> tuple[str, ...]:
    """Return the options for each shard's command, as they were written."""
    command = context.command
    parser = command.make_parser(context)
    written, _, order = parser.parse_args(list(context.meta[_WORDS]))
    words: list[str] = []
    for option in dict.fromkeys(order):
        name = str(option.name)
        if (
            not isinstance(option, click.Option)
            or name in _NOT_FORWARDED
            or name.startswith(OUTPUT)
        ):
            continue
        value = written[name]
        if option.is_flag:
            words.append(option.opts[0] if value else option.secondary_opts[0])
            continue
        for item in value if option.multiple else (value,):
            words += (option.opts[0], str(item))
    return tuple(words)


class PartedCommand(ExportingCommand):
    """Keeps its words as they were written. With --engine, each shard gets some of them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and keep the words."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)


def _measure_by_engine(
    parts: EngineOptions,
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
    from perfci.commands.project import open_project
    from perfci.commands.shards import check_in_parts, compare_in_parts

    with calling() as caller:
        project = open_project(caller, **{name: given[name] for name in PROJECT_OPTIONS})
        if base is None:
            collected = check_in_parts(project, head, parts, outputs)
        else:
            collected = compare_in_parts(
                project, base, head, parts, outputs, same=same, benchmarks_of=benchmarks_of
            )
    for merged in collected.reports:
        show_report(merged.report, verbose=verbose, err=bool(merged.shown))
        show_texts(shown_as(name, text) for name, text in merged.shown.items())
    if collected.kept and not is_quiet():
        say(f"perfci: what the shards printed is in {collected.kept}", err=True)
    for merged in collected.reports:
        if merged.problem is not None:
            raise merged.problem
    strict = project.config.policy.strict
    return worst_code(merged_code(merged, strict=strict) for merged in collected.reports)


@click.command(
    "merge",
    cls=ExportingCommand,
    required="json",
    epilog="Example: perfci merge shards/*.json --expect 4 --json report.json\n\n"
    "Exit codes: those of compare; 3 also where a shard is missing.",
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
def merge_command(
    files: tuple[Path, ...],
    expect: int | None,
    strict: bool | None,
    config_path: Path | None,
    outputs: Mapping[str, Path],
) -> int:
    """Join the reports of shards in FILES to one report for each environment.

    All their comparisons are corrected as one family and decided with this folder's configuration.
    The shards' own verdicts don't count. Prints the JSON files that it wrote, one per line, or with
    `-` the report itself. Of several environments, each has its key before the file's suffix.
    """
    from perfci.commands.project import configuration
    from perfci.commands.shards import merge_reports
    from perfci.report.outline import headline, outline

    policy = configuration(root_here(), config_path, strict=strict).policy
    codes = []
    problems = []
    for merged in merge_reports(files, policy, outputs, expect=expect):
        show_texts(shown_as(name, text) for name, text in merged.shown.items())
        if merged.problem is not None:
            problems.append(merged.problem)
        elif not merged.shown:
            say(str(merged.outputs["json"]))
        verdict = f"{merged.report.verdict.status} — {headline(outline(merged.report))}"
        say(f"perfci: {clean_line(verdict, 600)}", err=True)
        codes.append(merged_code(merged, strict=policy.strict))
    if problems:
        raise joined_error(problems)
    return worst_code(codes)


def merged_code(merged: MergedReport, *, strict: bool) -> int:
    """Return the exit code of a merged report, which never passes where it lacks a shard."""
    code = exit_code(merged.report, strict=strict)
    return EXIT_NO_VERDICT if merged.incomplete and code == EXIT_PASS else code
