"""``--engine`` and what belongs to it: ``compare`` and ``check`` with their shards submitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.output import ExportingCommand
from perfci.cli.printing import is_quiet, say
from perfci.verdict.shards import MOST_SHARDS

if TYPE_CHECKING:
    from perfci.commands.parts import Parts

_FOLDER = click.Path(file_okay=False, path_type=Path)
_OWN = ("engine", "shards", "at_once", "sbatch", "job_folder")
_NOT_FORWARDED = {
    *_OWN, "shard", "durations_path", "benchmarks_of", "log_dir", "strict", "verbose", "quiet",
    "log_format",
}  # fmt: skip
"""What is of the one who waits and merges, or is given to each shard in another way."""


_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(["local", "slurm"]),
        help="Measure in --shards on parts of this machine, or by Slurm, and merge.",
    ),
    click.option(
        "--shards",
        type=click.IntRange(1, MOST_SHARDS),
        metavar="N",
        help="In how many parts --engine measures.",
    ),
    click.option(
        "--at-once",
        type=click.IntRange(1, MOST_SHARDS),
        metavar="N",
        help="How many --engine local measures at a time (default: as `calibrate` allows, else 1).",
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
        type=_FOLDER,
        metavar="DIR",
        help="Where --engine keeps its job (default: in the cache folder).",
    ),
)


def engine_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options to a ``PartedCommand``; with them, ``function`` isn't called."""

    @wraps(function)
    def either(**given: Any) -> int:
        own = {name: value for name in _OWN if (value := given.pop(name))}
        if not own:
            return function(**given)
        return _deliver(_parts(own, given, click.get_current_context()), **given)

    for option in reversed(_OPTIONS):
        either = option(either)
    return either


def _parts(own: Mapping[str, Any], given: Mapping[str, Any], context: click.Context) -> Parts:
    from perfci.commands.parts import Parts

    if "engine" not in own or "shards" not in own:
        raise click.UsageError("give --engine and --shards: they belong together")
    for name in ("shard", "fail_fast", "last_failed", "if_stored"):
        if given.get(name):
            raise click.UsageError(f"--{name.replace('_', '-')} doesn't go with --engine")
    if own["engine"] != "slurm" and "sbatch" in own:
        raise click.UsageError("--sbatch is for --engine slurm")
    if own["engine"] != "local" and "at_once" in own:
        raise click.UsageError("--at-once is for --engine local: Slurm decides by itself")
    return Parts(
        engine=own["engine"],
        shards=own["shards"],
        at_once=own.get("at_once", 0),
        sbatch=own.get("sbatch", ()),
        folder=own.get("job_folder"),
        durations=given["durations_path"],
        log_folder=given["log_dir"],
        options=_forwarded(context),
    )


def _forwarded(context: click.Context) -> tuple[str, ...]:
    """Return the options that each shard's command is given, as they were written."""
    command = context.command
    parser = command.make_parser(context)
    written, _, order = parser.parse_args(list(context.meta[_WORDS]))
    words: list[str] = []
    for option in dict.fromkeys(order):
        name = str(option.name)
        if not isinstance(option, click.Option) or name in _NOT_FORWARDED or _is_output(name):
            continue
        value = written[name]
        if option.is_flag:
            words.append(option.opts[0] if value else option.secondary_opts[0])
            continue
        for one in value if option.multiple else (value,):
            words += (option.opts[0], str(one))
    return tuple(words)


_WORDS = f"{__name__}.words"


class PartedCommand(ExportingCommand):
    """Keeps its words as they were written: with --engine, each shard is given some of them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as ever."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)


def _is_output(name: str) -> bool:
    return name.startswith("output_")


def _deliver(
    parts: Parts,
    *,
    head: str,
    outputs: Mapping[str, Path],
    verbose: bool,
    quiet: bool,
    base: str | None = None,
    same: bool = False,
    benchmarks_of: str | None = None,
    **given: Any,
) -> int:
    """Have the parts measured, print what merging them gave, and return the exit code."""
    from perfci.cli.caller import calling
    from perfci.cli.merge import merged_code
    from perfci.cli.output import show_report, show_texts, shown_as, worst_code
    from perfci.commands.parts import check_in_parts, compare_in_parts
    from perfci.commands.project import open_project

    with calling(quiet=quiet) as caller:
        names = ("config_path", "rounds", "budget", "seed", "strict", "inject", "launcher")
        project = open_project(caller, **{name: given[name] for name in names})
        if base is None:
            collected = check_in_parts(project, head, parts, outputs)
        else:
            collected = compare_in_parts(
                project, base, head, parts, outputs, same=same, benchmarks_of=benchmarks_of
            )
    for one in collected.reports:
        show_report(one.report, verbose=verbose, quiet=quiet, err=bool(one.shown))
        show_texts(shown_as(name, text) for name, text in one.shown.items())
    if collected.kept and not is_quiet():
        say(
            f"perfci: the same command measures what is missing; what is there: {collected.kept}",
            err=True,
        )
    for one in collected.reports:
        if one.problem is not None:
            raise one.problem
    strict = project.config.policy.strict
    return worst_code(merged_code(one, strict=strict) for one in collected.reports)
