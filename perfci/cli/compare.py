"""``perfci compare``: the main command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from perfci.cli.options import (
    inject_option,
    measuring_options,
    python_option,
    record_options,
    refs,
    shard_options,
    showing_options,
    strict_option,
)
from perfci.cli.parts import PartedCommand, engine_options
from perfci.verdict.shards import Shard


@click.command(
    "compare",
    cls=PartedCommand,
    epilog="Example: perfci compare main HEAD -k encoder --markdown comment.md\n\n"
    "Exit codes: 0 no regression was found (also inconclusive), 1 regression, 2 usage, "
    "3 no trustworthy verdict, 4 git, disk or database.",
)
@click.argument("base", shell_complete=refs)
@click.argument("head", default=".", shell_complete=refs)
@measuring_options
@python_option
@click.option("--base-python", metavar="PATH", help="Another Python that runs base.")
@click.option("--head-python", metavar="PATH", help="Another Python that runs head.")
@click.option(
    "--fail-fast",
    is_flag=True,
    help="Stop at the first regression or failure. Not with --shard.",
)
@click.option(
    "--last-failed",
    is_flag=True,
    help="Only cases that regressed or failed in this repository's last comparison here.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Measure cases of which both sides are the same code as any other.",
)
@click.option(
    "--same",
    is_flag=True,
    help="Measure although both sides are one commit (an A/A); `calibrate` shows more.",
)
@click.option(
    "--benchmarks-of",
    metavar="REV",
    shell_complete=refs,
    help="Run the benchmark files of REV (default: HEAD's).",
)
@click.option(
    "--why/--no-why",
    default=None,
    help="Look into cases that moved (default: `why` in the configuration, else yes).",
)
@click.option(
    "--trace",
    "traces",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write Chrome traces of both sides of cases that moved, which Perfetto opens.",
)
@shard_options
@engine_options
@inject_option
@strict_option
@record_options
@showing_options
def command(
    base: str,
    head: str,
    python: str | None,
    base_python: str | None,
    head_python: str | None,
    selection: str,
    fail_fast: bool,
    last_failed: bool,
    everything: bool,
    same: bool,
    benchmarks_of: str | None,
    why: bool | None,
    traces: Path | None,
    shard: Shard | None,
    durations_path: Path | None,
    record: bool,
    history: str | None,
    outputs: Mapping[str, Path],
    log_dir: Path | None,
    verbose: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Measure BASE and HEAD side by side and decide whether HEAD got worse.

    BASE and HEAD are git revisions; HEAD defaults to `.`, the working tree with its uncommitted
    changes. Your checkout is not touched.
    """
    from perfci.cli.caller import calling
    from perfci.cli.output import conclude, exit_code
    from perfci.cli.report import durations_of_shard
    from perfci.commands.project import open_project
    from perfci.commands.revisions import Asked, compare_revisions

    durations = durations_of_shard(shard, durations_path)
    asked = Asked(
        selection, python, shard, durations, record, history, outputs, log_dir, everything, why,
        traces, last_failed,
    )  # fmt: skip
    with calling(quiet=quiet) as caller:
        project = open_project(caller, **options)
        measured = compare_revisions(
            project,
            base,
            head,
            asked,
            base_python=base_python,
            head_python=head_python,
            fail_fast=fail_fast,
            same=same,
            benchmarks_of=benchmarks_of,
        )
    conclude(measured, outputs, verbose=verbose, quiet=quiet)
    return exit_code(measured.report, strict=project.config.policy.strict)
