"""``perfci check``: head against the stored baseline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from perfci.cli.exporting import ExportingCommand
from perfci.cli.options import (
    configuration,
    history_place,
    inject_option,
    interpreter,
    measuring_options,
    python_option,
    record_options,
    shard_options,
    showing_options,
    strict_option,
)
from perfci.cli.printing import say
from perfci.errors import EXIT_PASS
from perfci.verdict.shards import Shard


@click.command(
    "check",
    cls=ExportingCommand,
    epilog="Example: perfci check --markdown comment.md --json report.json",
)
@click.argument("head", default=".")
@measuring_options
@python_option
@click.option(
    "--no-confirm",
    is_flag=True,
    help="Fail on a suspicion, without measuring both sides together.",
)
@click.option(
    "--if-stored",
    is_flag=True,
    help="Say so and end with 0 where no baseline is stored; else that is refused (2).",
)
@shard_options
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
    together before anything fails.
    """
    from perfci.app.check import NothingStored, check
    from perfci.app.compare import Request
    from perfci.baselines.files import BaselineStore
    from perfci.cli.output import check_writable, deliver, exit_code, history_files
    from perfci.cli.past import with_past
    from perfci.cli.recording import recorder, tell_left_out
    from perfci.cli.report import durations_of_shard
    from perfci.cli.surroundings import open_here, surroundings
    from perfci.session.workplace import Wanted

    durations = durations_of_shard(shard, durations_path)
    repository = open_here()
    config = configuration(repository.root, **options)
    check_writable(outputs, history_files(history, config, repository.root))
    resolved = repository.resolve(head)
    tell_left_out(repository, resolved)
    recording = recorder(history, repository, config, resolved) if record else None
    try:
        with surroundings(repository, config, quiet=quiet) as around:
            measured, report = check(
                around,
                Wanted("head", resolved, interpreter(python, config.python, repository.root)),
                BaselineStore(repository.root / config.baselines),
                Request(selection, log_folder=log_dir, shard=shard, durations=durations),
                confirm=not no_confirm,
            )
    except NothingStored as nothing:
        if not if_stored:
            raise
        say(f"perfci: nothing was checked: {nothing.message}", err=True)
        return EXIT_PASS
    if record or history or config.history:
        place = history_place(history, config, repository.root)
        report = with_past(report, place, repository, config.aliases)
    deliver(report, outputs, verbose=verbose, quiet=quiet)
    if recording:
        recording.record([measured], report, quiet=quiet)
    return exit_code(report, strict=config.policy.strict)
