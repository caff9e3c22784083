"""``perfci run``: one commit's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from perfci.cli.exporting import ExportingCommand
from perfci.cli.options import (
    configuration,
    interpreter,
    measuring_options,
    python_option,
    record_options,
    showing_options,
)


@click.command(
    "run", cls=ExportingCommand, epilog="Example: perfci run HEAD -k encoder --json run.json"
)
@click.argument("rev", default=".")
@measuring_options
@python_option
@record_options
@showing_options
def command(
    rev: str,
    python: str | None,
    selection: str,
    record: bool,
    history: str | None,
    outputs: Mapping[str, Path],
    log_dir: Path | None,
    verbose: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Measure REV (default: the working tree) alone and show its numbers."""
    from perfci.app.compare import Request
    from perfci.app.run import run
    from perfci.cli.output import check_writable, deliver, exit_code, history_files
    from perfci.cli.recording import recorder
    from perfci.cli.surroundings import open_here, surroundings
    from perfci.session.workplace import Wanted

    repository = open_here()
    config = configuration(repository.root, **options)
    check_writable(outputs, history_files(history, config, repository.root))
    resolved = repository.resolve(rev)
    recording = recorder(history, repository, config, resolved) if record else None
    with surroundings(repository, config, quiet=quiet) as around:
        measured, report = run(
            around,
            Wanted("head", resolved, interpreter(python, config.python, repository.root)),
            Request(selection, log_folder=log_dir),
        )
    deliver(report, outputs, verbose=verbose, quiet=quiet)
    if recording:
        recording.record([measured], report, quiet=quiet)
    return exit_code(report, strict=config.policy.strict)
