"""``perfci report``: renders a report file again."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.cli.output import FormatsCommand
from perfci.cli.printing import is_coloured, is_quiet, say, show
from perfci.files import write_file
from perfci.outputs import STANDARD_OUTPUT, unwritable

if TYPE_CHECKING:
    from perfci.verdict.shards import Shard


class _ReportCommand(FormatsCommand):
    """``--format`` has every format."""

    @cached_property
    def options(self) -> list[click.Option]:
        """Return ``--format``."""
        from perfci.report.exporters import TERMINAL

        choice = click.Choice([TERMINAL, *self.formats])
        return [
            click.Option(["--format", "form"], type=choice, default=TERMINAL, show_default=True)
        ]


@click.command(
    "report", cls=_ReportCommand, epilog="Example: perfci report report.json --format markdown"
)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-v", "--verbose", is_flag=True, help="Show every comparison (terminal).")
def command(file: Path, form: str, output: Path | None, verbose: bool) -> None:
    """Render FILE, a `perfci.report/1` JSON file (`-` for standard input), in any format.

    With -q the verdict's line alone, of a terminal.
    """
    from perfci.cli.output import verdict_line
    from perfci.commands.project import load_report, report_in
    from perfci.report.exporters import TERMINAL, named
    from perfci.report.limits import MOST_BYTES
    from perfci.report.terminal import render_terminal

    text: str
    if str(file) == "-":
        # no more than a report may have, and one byte by which it is seen to be too large
        report = report_in(sys.stdin.buffer.read(MOST_BYTES + 1), "standard input")
    else:
        report = load_report(file)
    if form == TERMINAL and is_quiet():
        shown = verdict_line(report)
        text = shown
    elif form == TERMINAL:
        width = shutil.get_terminal_size((100, 24)).columns
        color = is_coloured() and (output is None or output == STANDARD_OUTPUT)
        shown = render_terminal(report, width=width, color=color, verbose=verbose)
        text = shown
    else:
        text = named(form).text(report)
        shown = named(form).shown(text)
    if output is None or output == STANDARD_OUTPUT:
        show(shown)
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_file(output, text)
    except OSError as error:
        raise unwritable(output, error) from error


def durations_of_shard(shard: Shard | None, path: Path | None) -> Mapping[str, float]:
    """Return by what ``--shard`` splits; a usage error where there is nothing to split."""
    from perfci.commands.project import load_durations

    if shard is None and path is not None:
        raise click.UsageError("--durations says how to split the cases: give --shard as well")
    return load_durations(path, say)
