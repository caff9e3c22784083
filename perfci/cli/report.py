"""``perfci report``: renders a report file again."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from perfci.errors import OutsideError
from perfci.reading import read_regular

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
    from perfci.report.formats import render
    from perfci.report.json_report import read_report
    from perfci.report.terminal import render_terminal

    try:
        text = sys.stdin.read() if str(file) == "-" else read_regular(file).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise OutsideError(
            "unreadable", f"{file} can't be read: {reason}", "Name a file that --json wrote."
        ) from error
    report = read_report(text, str(file))
    if form == "terminal":
        width = shutil.get_terminal_size((100, 24)).columns
        color = sys.stdout.isatty() and output is None
        rendered = render_terminal(report, width=width, color=color, verbose=verbose)
    else:
        rendered = render(report, form)
    if output is None:
        click.echo(rendered, nl=False)
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(rendered, encoding="utf-8")
    except OSError as error:
        raise OutsideError(
            "unwritable", f"{output} can't be written: {error.strerror}", "Choose another path."
        ) from error
