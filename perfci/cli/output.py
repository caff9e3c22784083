"""Writing reports to files and to the terminal."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from perfci.cli.options import Outputs
from perfci.errors import (
    EXIT_NO_VERDICT,
    EXIT_PASS,
    EXIT_REGRESSION,
    OutsideError,
)
from perfci.record.report import Report


def check_writable(outputs: Outputs) -> None:
    """Fail before anything is measured where a file could not be written afterwards."""
    for path in outputs.files().values():
        existed = path.exists()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab"):
                pass
        except OSError as error:
            raise unwritable(path, error) from error
        if not existed:
            path.unlink()


def deliver(report: Report, outputs: Outputs, *, verbose: bool, quiet: bool) -> None:
    """Write the files, then print: a closed terminal loses no file, a full disk no table."""
    try:
        write(report, outputs)
    finally:
        show(report, verbose=verbose, quiet=quiet)


def write(report: Report, outputs: Outputs) -> None:
    """Write every file that was asked for; one that fails doesn't keep the others back."""
    from perfci.report.formats import render

    problems = []
    for name, path in outputs.files().items():
        try:
            path.write_text(render(report, name), encoding="utf-8")
        except OSError as error:
            problems.append(unwritable(path, error, "What was measured is shown on the terminal."))
    if problems:
        raise problems[0]


def show(report: Report, *, verbose: bool, quiet: bool) -> None:
    """Print the report as a terminal table, or the verdict alone."""
    from perfci.report.clean import clean_line
    from perfci.report.outline import headline
    from perfci.report.terminal import render_terminal

    if quiet:
        alone = report.base is None and report.command == "run"
        said = headline(report) if alone else "; ".join(report.verdict.reasons) or "no change"
        text = clean_line(f"{'run' if alone else report.verdict.status}: {said}", 2000) + "\n"
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        text = render_terminal(report, width, sys.stdout.isatty(), verbose=verbose)
    try:
        click.echo(text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads: the files are written, and the verdict is the exit code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_code(report: Report, *, strict: bool) -> int:
    """Return design 8's exit code of a report's verdict. Half a session is no verdict."""
    if report.interrupted and report.verdict.status != "fail":
        return EXIT_NO_VERDICT
    match report.verdict.status:
        case "fail":
            return EXIT_REGRESSION
        case "error":
            return EXIT_NO_VERDICT
        case "inconclusive":
            return EXIT_NO_VERDICT if strict else EXIT_PASS
        case "pass":
            return EXIT_PASS


def unwritable(path: Path, error: OSError, besides: str = "") -> OutsideError:
    """Return the error for a file that can't be written."""
    return OutsideError(
        "unwritable",
        f"{path} can't be written: {error.strerror}",
        f"Choose another path, or make room. {besides}".rstrip(),
    )
