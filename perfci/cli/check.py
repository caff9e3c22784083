"""``perfci check``: head against the stored baseline."""

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
from perfci.cli.printing import show
from perfci.errors import EXIT_PASS
from perfci.report.clean import clean_lines
from perfci.verdict.shards import Shard


@click.command(
    "check",
    cls=PartedCommand,
    epilog="Example: perfci check --markdown comment.md --json report.json",
)
@click.argument("head", default=".", shell_complete=refs)
@measuring_options
@python_option
@click.option(
    "--no-confirm",
    is_flag=True,
    help="Fail on a suspicion, without measuring both sides in pairs.",
)
@click.option(
    "--if-stored",
    is_flag=True,
    help="Say so and end with 0 where no baseline is stored; else that is refused (2).",
)
@shard_options
@engine_options
@inject_option
@strict_option
@record_options
@showing_options
def command(
    head: str,
    python: str | None,
    selection: str,
    no_confirm: bool,
    if_stored: bool,
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
    """Measure HEAD (default: the working tree) and decide against the stored baseline.

    What looks like a regression is confirmed by measuring the baseline's commit and HEAD
    in pairs before anything fails.
    """
    from perfci.cli.caller import calling
    from perfci.cli.output import conclude, exit_code
    from perfci.cli.report import durations_of_shard
    from perfci.commands.check import NothingStored
    from perfci.commands.project import open_project
    from perfci.commands.revisions import Asked, check_revision

    durations = durations_of_shard(shard, durations_path)
    asked = Asked(selection, python, shard, durations, record, history, outputs, log_dir)
    try:
        with calling(quiet=quiet) as caller:
            project = open_project(caller, **options)
            measured = check_revision(project, head, asked, confirm=not no_confirm)
    except NothingStored as nothing:
        if not if_stored:
            raise
        show(clean_lines(f"perfci: nothing was checked: {nothing.message}\n"), err=True)
        return EXIT_PASS
    conclude(measured, outputs, verbose=verbose, quiet=quiet)
    return exit_code(measured.report, strict=project.config.policy.strict)
