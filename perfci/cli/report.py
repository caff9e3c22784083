"""``perfci report``: renders a report file again."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.cli.output import unwritable
from perfci.cli.printing import is_terminal, show
from perfci.errors import OutsideError
from perfci.writing import write_file

if TYPE_CHECKING:
    from perfci.record.report import Report

_FORMATS = ("terminal", "markdown", "json", "junit", "csv")


@click.command("report", epilog="Example: perfci report report.json --format markdown")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="terminal", show_default=True
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-v", "--verbose", is_flag=True, help="Show every comparison (terminal).")
def command(file: Path, form: str, output: Path | None, verbose: bool) -> None:
    """Render FILE, a `perfci.report/1` JSON file (`-` for standard input), in any format."""
    from perfci.cli.report_file import load_report
    from perfci.report.formats import render
    from perfci.report.terminal import render_terminal

    report = _standard_input() if str(file) == "-" else load_report(file)
    if form == "terminal":
        width = shutil.get_terminal_size((100, 24)).columns
        color = is_terminal() and output is None
        rendered = render_terminal(report, width=width, color=color, verbose=verbose)
    else:
        rendered = render(report, form)
    if output is None:
        show(rendered)
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_file(output, rendered)
    except OSError as error:
        raise unwritable(output, error) from error


def _standard_input() -> Report:
    from perfci.report.json_report import read_report
    from perfci.report.limits import MOST_BYTES

    try:
        # no more than a report may have, and one byte by which it is seen to be too large
        text = sys.stdin.buffer.read(MOST_BYTES + 1).decode("utf-8")
    except UnicodeDecodeError as error:
        raise OutsideError(
            "unreadable",
            "standard input can't be read: not text",
            "Give it what --json wrote.",
        ) from error
    return read_report(text, "standard input")
