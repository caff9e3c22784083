"""A report on the terminal and as an exit code."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from perfci.app.outputs import STANDARD_OUTPUT, rendered, write_files
from perfci.cli.printing import discard, flush, is_coloured, show
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, EXIT_REGRESSION, PerfciError, UsageError
from perfci.model.report import Report
from perfci.render.clean import Clean


class Concluded(Protocol):
    """What was measured: its report, and how to record it."""

    @property
    def report(self) -> Report:
        """The report of it."""

    def record(self, *, quiet: bool) -> None:
        """Add its runs to the history, where that was asked for."""


def conclude(
    measured: Concluded, outputs: Mapping[str, Path], *, verbose: bool, quiet: bool
) -> None:
    """Deliver the report, then record the runs: a file that can't be written loses no run.

    PerfciError says of both what failed.
    """
    failed: list[PerfciError] = []
    for step in (
        partial(deliver, measured.report, outputs, verbose=verbose, quiet=quiet),
        partial(measured.record, quiet=quiet),
    ):
        try:
            step()
        except PerfciError as error:
            failed.append(error)
    if failed:
        first = failed[0]
        raise type(first)(
            first.slug,
            "; ".join(error.message for error in failed),
            "\n".join(error.advice for error in failed if error.advice),
        ) from first


def deliver(report: Report, outputs: Mapping[str, Path], *, verbose: bool, quiet: bool) -> None:
    """Write the files, then print: a closed terminal loses no file, a full disk no table.

    A broken exporter of another distribution loses its own file only. Where an output is ``-``,
    standard output has nothing else: the table goes to standard error.
    """
    texts: dict[Path, str] = {}
    broken = []
    printed: list[Clean] = []
    try:
        for name, path in outputs.items():
            try:
                text = rendered(report, {name: path})
            except UsageError as error:
                broken.append(error)
                continue
            if path == STANDARD_OUTPUT:
                printed.append(shown_as(name, text[path]))
            else:
                texts |= text
        write_files(texts, "What was measured is shown on the terminal.")
    finally:
        show_report(report, verbose=verbose, quiet=quiet, err=bool(printed))
    show_texts(printed)
    if broken:
        raise broken[0]


def show_report(report: Report, *, verbose: bool, quiet: bool, err: bool = False) -> None:
    """Print the report as a terminal table, or the verdict alone."""
    from perfci.render.terminal import render_terminal

    if quiet:
        text = verdict_line(report)
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        text = render_terminal(report, width, is_coloured(err=err), verbose=verbose)
    if err:
        show(text, err=True)
    else:
        show_texts([text])


def verdict_line(report: Report) -> Clean:
    """Return the verdict and its reasons, on one line."""
    from perfci.render.clean import clean_line, clean_lines
    from perfci.render.outline import headline, injected_text

    alone = report.is_one_sided
    reasons = () if alone else report.verdict.reasons
    said = "; ".join(filter(None, (injected_text(report), *(reasons or (headline(report),)))))
    line = f"{'run' if alone else report.verdict.status}: {said}"
    return clean_lines(clean_line(line, 2000) + "\n")


def show_texts(texts: Iterable[Clean]) -> None:
    """Print to standard output; a reader that is gone is no error."""
    try:
        for text in texts:
            show(text)
        flush()
    except BrokenPipeError:  # nobody reads: the files are written, and the verdict is the exit code
        discard()


def shown_as(name: str, text: str) -> Clean:
    """Return what a format rendered as it may be printed."""
    from perfci.render.exporters import named

    return named(name).shown(text)


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


def worst_code(codes: Iterable[int]) -> int:
    """A regression in one environment is a regression, whatever is unknown in others."""
    found = set(codes)
    return EXIT_REGRESSION if EXIT_REGRESSION in found else max(found)
