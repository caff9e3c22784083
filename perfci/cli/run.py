"""``perfci run``: one commit's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from perfci.cli.options import (
    measuring_options,
    python_option,
    record_options,
    refs,
    showing_options,
)
from perfci.cli.output import ExportingCommand


@click.command(
    "run", cls=ExportingCommand, epilog="Example: perfci run HEAD -k encoder --json run.json"
)
@click.argument("rev", default=".", shell_complete=refs)
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
    from perfci.cli.caller import calling
    from perfci.cli.output import conclude, exit_code
    from perfci.commands.project import open_project
    from perfci.commands.revisions import Asked, run_revision

    asked = Asked(
        selection, python, record=record, history=history, outputs=outputs, log_folder=log_dir
    )
    with calling(quiet=quiet) as caller:
        project = open_project(caller, **options)
        measured = run_revision(project, rev, asked)
    conclude(measured, outputs, verbose=verbose, quiet=quiet)
    return exit_code(measured.report, strict=project.config.policy.strict)
