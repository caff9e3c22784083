"""Reports on the terminal, as exit codes and in every format, and ``perfci report``."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.options import FILE, OUTPUT
from perfci.cli.printing import discard, is_coloured, is_quiet, show, show_all
from perfci.errors import (
    EXIT_INTERRUPTED,
    EXIT_NO_VERDICT,
    EXIT_PASS,
    EXIT_REGRESSION,
    PerfciError,
    joined_error,
)
from perfci.files import write_file, writing
from perfci.model.report import Report
from perfci.outputs import STANDARD_OUTPUT, rendered, write_files
from perfci.report.clean import Clean, clean_line, clean_lines
from perfci.report.exporters import FORMATS, TERMINAL, exporter
from perfci.verdict.decision import was_measured

if TYPE_CHECKING:
    from perfci.commands.revisions import RecordableReport
    from perfci.config.loading import Config

_BY_SUFFIX = {".html": "html", ".json": "json", ".md": "markdown", ".xml": "junit"}
"""The format that ``report`` writes without ``--format``, by the suffix of its file."""


def conclude(
    measured: RecordableReport, outputs: Mapping[str, Path], config: Config, *, verbose: bool
) -> int:
    """Deliver the report, then record the runs, and return the exit code (README.md, Exit codes).

    A file that can't be written loses no run. PerfciError names everything that failed.
    """
    failed: list[PerfciError] = []
    for step in (partial(deliver, measured.report, outputs, verbose=verbose), measured.record):
        try:
            step()
        except PerfciError as error:
            failed.append(error)
    if failed:
        raise joined_error(failed) from failed[0]
    report = measured.report
    answered = report.failures or any(map(was_measured, report.results))
    codes = {finding.code for row in report.results for finding in row.findings}
    if "interrupted" in codes and not answered:
        return EXIT_INTERRUPTED
    return exit_code(report, strict=config.policy.strict)


def deliver(report: Report, outputs: Mapping[str, Path], *, verbose: bool) -> None:
    """Write the files, then print: a closed terminal loses no file, a full disk no table.

    If an output is ``-``, standard output has nothing else, and the table goes to standard error.
    """
    texts: dict[Path, Clean] = {}
    try:
        texts = rendered(report, outputs)
        printed = [texts.pop(path) for path in list(texts) if path == STANDARD_OUTPUT]
        write_files(texts, "The results are shown on the terminal.")
    finally:
        show_report(report, verbose=verbose, err=STANDARD_OUTPUT in outputs.values())
    show_texts(printed)


def show_report(report: Report, *, verbose: bool, err: bool = False) -> None:
    """Print the report as a terminal table, or the verdict alone."""
    text = _terminal_text(report, verbose=verbose, color=is_coloured(err=err))
    if err:
        show(text, err=True)
    else:
        show_texts([text])


def _terminal_text(report: Report, *, verbose: bool, color: bool) -> Clean:
    """Return the report for a terminal, or its verdict alone."""
    from perfci.report.terminal import render_terminal

    if is_quiet():
        return verdict_line(report)
    width = shutil.get_terminal_size((100, 24)).columns
    return render_terminal(report, width, color, verbose=verbose)


def verdict_line(report: Report) -> Clean:
    """Return the verdict and what matters most, in one sentence."""
    from perfci.report.view import ReportView

    view = ReportView(report)
    line = f"{view.word}: {'; '.join((*view.warnings, view.headline))}"
    return clean_lines(clean_line(line, 2000) + "\n")


def show_texts(texts: Iterable[Clean]) -> None:
    """Print to standard output. A closed pipe is not an error."""
    try:
        show_all(texts)
    except BrokenPipeError:  # the files are written, and the verdict is the exit code
        discard()


def exit_code(report: Report, *, strict: bool) -> int:
    """Return the exit code (README.md, Exit codes) of a verdict, or of an interruption."""
    if report.interrupted and report.verdict.status != "fail":
        return EXIT_NO_VERDICT
    match report.verdict.status:
        case "fail":
            return EXIT_REGRESSION
        case "error":
            return EXIT_NO_VERDICT
        case "inconclusive":
            return EXIT_NO_VERDICT if strict or report.verdict.looks_slower else EXIT_PASS
        case "pass":
            return EXIT_PASS


def worst_code(codes: Iterable[int]) -> int:
    """Return the exit code of several reports. One regression is a regression."""
    distinct = set(codes)
    return EXIT_REGRESSION if EXIT_REGRESSION in distinct else max(distinct)


class ExportingCommand(click.Command):
    """A command with ``--NAME FILE`` for each format. It gets the chosen files as ``outputs``."""

    def __init__(
        self, name: str, *, params: list[click.Parameter], required: str = "", **attributes: Any
    ) -> None:
        names = [parameter.name for parameter in params]
        at = names.index("log_folder") if "log_folder" in names else len(names)
        options = [_FormatOption(form, required=form == required) for form in FORMATS]
        params = [*params[:at], *options, *params[at:]]
        super().__init__(name, params=params, **attributes)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and gather the requested files by their formats' names."""
        rest = super().parse_args(ctx, args)
        given = {name: ctx.params.pop(OUTPUT + name, None) for name in FORMATS}
        ctx.params["outputs"] = {name: path for name, path in given.items() if path is not None}
        return rest


class _FormatOption(click.Option):
    """``--NAME FILE``. Its exporter is imported when its help is shown."""

    def __init__(self, name: str, *, required: bool) -> None:
        super().__init__([f"--{name}", OUTPUT + name], type=FILE, required=required)
        self._format = name

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = exporter(self._format).HELP
        return super().get_help_record(ctx)


@click.command("report", epilog="Example: perfci report report.json --format markdown")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--format",
    "form",
    type=click.Choice([TERMINAL, *FORMATS]),
    show_default=f"by the suffix of --output, or else {TERMINAL}",
)
@click.option("-o", "--output", type=FILE)
@click.option("-v", "--verbose", is_flag=True, help="Show every comparison (terminal).")
def report_command(file: Path, form: str | None, output: Path | None, verbose: bool) -> None:
    """Render FILE, a `perfci.report/1` JSON file (`-` for standard input), in any format.

    With -q, print only the verdict line.
    """
    from perfci.commands.project import load_report, report_in
    from perfci.report.exporters.json import MOST_BYTES

    if str(file) == "-":
        # one byte more than a report may have, so that a larger one is noticed
        report = report_in(sys.stdin.buffer.read(MOST_BYTES + 1), "standard input")
    else:
        report = load_report(file)
    form = form or _BY_SUFFIX.get(output.suffix if output else "", TERMINAL)
    if form == TERMINAL:
        color = is_coloured() and output in {None, STANDARD_OUTPUT}
        text = _terminal_text(report, verbose=verbose, color=color)
    else:
        text = exporter(form).render(report)
    if output is None or output == STANDARD_OUTPUT:
        show(text)
        return
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        write_file(output, text)
