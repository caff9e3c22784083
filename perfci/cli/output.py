"""Writing reports to files and to the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from perfci.cli.apart import require_apart
from perfci.cli.options import Outputs
from perfci.cli.printing import discard, flush, is_terminal, show
from perfci.errors import (
    EXIT_NO_VERDICT,
    EXIT_PASS,
    EXIT_REGRESSION,
    OutsideError,
)
from perfci.record.report import Report
from perfci.report.clean import Clean
from perfci.writing import require_writable, write_file


def check_writable(outputs: Outputs, history: Iterable[Path] = ()) -> None:
    """Fail before anything is measured where a file could not be written afterwards.

    Or where writing it would destroy another one, or one of the ``history``'s files.
    """
    files = outputs.files()
    require_apart({f"--{name}": path for name, path in files.items()}, history)
    for path in files.values():
        try:
            require_writable(path)
        except OSError as error:
            raise unwritable(path, error) from error


def deliver(report: Report, outputs: Outputs, *, verbose: bool, quiet: bool) -> None:
    """Write the files, then print: a closed terminal loses no file, a full disk no table."""
    try:
        write_files(rendered(report, outputs), "What was measured is shown on the terminal.")
    finally:
        show_report(report, verbose=verbose, quiet=quiet)


def rendered(report: Report, outputs: Outputs) -> dict[Path, Clean]:
    """Return the text of every file that was asked for."""
    from perfci.report.formats import render

    return {path: render(report, name) for name, path in outputs.files().items()}


def write_files(files: Mapping[Path, str], besides: str = "") -> None:
    """Write every file; one that fails doesn't keep the others back, and each of those is told."""
    problems = []
    for path, text in files.items():
        try:
            write_file(path, text)
        except OSError as error:
            problems.append(unwritable(path, error, besides))
    if problems:
        raise OutsideError(
            problems[0].slug, "; ".join(one.message for one in problems), problems[0].advice
        )


def show_report(report: Report, *, verbose: bool, quiet: bool) -> None:
    """Print the report as a terminal table, or the verdict alone."""
    from perfci.report.clean import clean_line, clean_lines
    from perfci.report.outline import headline, injected_text
    from perfci.report.terminal import render_terminal

    if quiet:
        alone = report.base is None and report.command == "run"
        reasons = () if alone else report.verdict.reasons
        said = "; ".join(filter(None, (injected_text(report), *(reasons or (headline(report),)))))
        line = f"{'run' if alone else report.verdict.status}: {said}"
        text = clean_lines(clean_line(line, 2000) + "\n")
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        text = render_terminal(report, width, is_terminal(), verbose=verbose)
    try:
        show(text)
        flush()
    except BrokenPipeError:  # nobody reads: the files are written, and the verdict is the exit code
        discard()


def exit_code(report: Report, *, strict: bool) -> int:
    """Return the exit code (README.md, Exit codes) of a verdict. Half a session is no verdict."""
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
        f"{path} can't be written: {error.strerror or error}",
        f"Choose another path, or make room. {besides}".rstrip(),
    )
