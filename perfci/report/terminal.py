"""The report for people at a terminal: the cases, what failed and why, and last the verdict."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from perfci.record.case import Failure
from perfci.record.report import Comparison, Report
from perfci.report.clean import Clean, clean_block, clean_line, clean_styled
from perfci.report.console import text_console
from perfci.report.failures import shown_failures
from perfci.report.outline import (
    headline,
    injected_text,
    other_reasons,
    part_text,
    same_code_text,
)
from perfci.report.ran import ran_lines
from perfci.report.terminal_rows import alone_lines, case_lines, styled, wrapped
from perfci.units import counted, format_duration, format_share

_VERDICT_STYLES = {
    "pass": "bold green",
    "fail": "bold red",
    "inconclusive": "bold yellow",
    "error": "bold red",
}
_LOG_LINES = 8


def render_terminal(report: Report, width: int, color: bool, *, verbose: bool = False) -> Clean:
    """Return the report in ``width`` columns, with ANSI colours only where ``color`` is set.

    ``verbose`` shows every comparison; without it a case in which nothing moved takes one line.
    """
    out = io.StringIO()
    console = text_console(out, max(40, width), color=color)
    for line in _lines(report, console.width, verbose=verbose):
        console.print(line, overflow="fold")
    return clean_styled(out.getvalue())  # once more: a line that was wrapped begins anew


def _lines(report: Report, width: int, *, verbose: bool) -> Iterator[Text]:
    alone = report.base is None and report.command == "run"
    told = {failure.case for failure in report.failures}
    rows_of = _by_case(
        [row for row in report.results if not (row.status == "failed" and row.case in told)]
    )
    build = alone_lines if alone else case_lines
    groups = [build(case, rows, verbose=verbose) for case, rows in rows_of.items()]
    groups.sort(key=lambda group: not group.moved)
    yield from styled([line for group in groups for line in group.lines], width)
    yield from _skipped(report, width, verbose=verbose)
    yield from _failures(shown_failures(report), width)
    yield from _why(report, width)
    yield from _notes(report, width)
    if verbose:
        for line in ran_lines(report):
            yield from wrapped(clean_line(line, 600), 0, width, "dim")
    yield Text()
    yield from _verdict(report, width, alone=alone)
    yield from wrapped(_timing(report), 0, width, "dim")


def _by_case(rows: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    found: dict[str, list[Comparison]] = {}
    for row in rows:
        found.setdefault(row.case, []).append(row)
    return found


def _skipped(report: Report, width: int, *, verbose: bool) -> Iterator[Text]:
    lines = [
        f"{clean_line(case)}  skipped: {clean_line(why)}" for case, why in report.skipped.items()
    ]
    if verbose:
        lines += [
            f"{clean_line(metric)}  not measured: {clean_line(why)}"
            for metric, why in report.not_measured.items()
        ]
    for line in lines:
        yield from (
            [Text(line, "dim")] if cell_len(line) <= width else wrapped(line, 0, width, "dim")
        )


def _failures(failures: Sequence[Failure], width: int) -> Iterator[Text]:
    for failure in failures:
        where = f"failed on {failure.side} in {failure.stage} ({failure.kind}): {failure.message}"
        yield Text()
        yield Text(clean_line(failure.case), "bold")
        yield from wrapped(clean_line(where, 600), 2, width, "red")
        for line in clean_block(failure.log_tail, _LOG_LINES).splitlines():
            yield Text(f"    {line}", "dim")


def _why(report: Report, width: int) -> Iterator[Text]:
    if report.explanations:
        yield Text()
        yield Text("Why", "bold")
    for one in report.explanations:
        place = f" ({one.file}:{one.line})" if one.file else ""
        text = f"{one.case} {one.metric}: {one.text}{place}"
        yield from wrapped(clean_line(text, 600), 2, width)


def _notes(report: Report, width: int) -> Iterator[Text]:
    if report.notes:
        yield Text()
    for one in report.notes:
        yield from wrapped(f"note: {clean_line(one, 600)}", 0, width, "dim")
    if report.base_environment is not None:
        yield Text("note: base and head were measured in different environments", "yellow")


def _verdict(report: Report, width: int, *, alone: bool) -> Iterator[Text]:
    status = "run" if alone else report.verdict.status
    style = "bold" if alone else _VERDICT_STYLES[report.verdict.status]
    text = f"perfci: {status} — {clean_line(headline(report), 600)}"
    yield from wrapped(text, 0, width, style)
    if injected := injected_text(report):
        yield from wrapped(clean_line(injected.upper(), 600), 2, width, "bold reverse yellow")
    if part := part_text(report):
        yield from wrapped(clean_line(part), 2, width, "bold reverse yellow")
    if alike := same_code_text(report):
        yield from wrapped(clean_line(alike, 600), 2, width, "yellow")
    for reason in other_reasons(report):
        yield from wrapped(clean_line(reason, 600), 2, width)


def _timing(report: Report) -> str:
    timing = report.timing
    share = timing.measured_s / timing.wall_s if timing.wall_s > 0 else None
    spent = f", {format_share(round(share, 2))} of it measuring" if share is not None else ""
    return f"{counted(timing.rounds, 'round')} in {format_duration(timing.wall_s)}{spent}"
