"""The report for people at a terminal: the cases, the failures, the reasons, last the verdict."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from perfci.model.case import Failure
from perfci.model.report import Comparison, Report
from perfci.model.status import Cause, traits
from perfci.model.words import words
from perfci.report.case_tables import case_tables
from perfci.report.clean import Clean, clean_block, clean_line, clean_prose, clean_styled
from perfci.report.outline import (
    GROUPS,
    Outline,
    group_of,
    grouped_failures,
    headline,
    injected_text,
    other_reasons,
    outline,
    part_text,
    shown_failures,
    undecided_warnings,
)
from perfci.report.rows import (
    BLAME,
    UNEXPLAINED,
    change_text,
    has_numbers,
    interval_text,
    note,
    replay_of,
    side_interval,
    side_text,
    statistics_text,
    status_text,
    unavailable_lines,
    whys,
)
from perfci.units import counted, first_of, format_duration, format_share
from perfci.verdict.caveats import cause_of

_ACCEPTED = "bold yellow"
_INDENT = 2
_GAP = "  "
_UNIT = re.compile(r"(?<=\d) (?=(?:[nµm]?s|[KMG]?i?B|GiB|min|h|%)(?![^\W_]))")
"""The blank between a number and its unit."""
_BOUND = "\N{NO-BREAK SPACE}"
"""Stands for such a blank while a text is wrapped."""
_VERDICT_STYLES = {
    "pass": "bold green",
    "fail": "bold red",
    "inconclusive": "bold yellow",
    "error": "bold red",
}
_LOG_LINES = 8
"""Lines of a failure's log."""
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a case: its name alone, or below it the cells of one comparison.

    ``extras`` follow the cells on the same line as far as they fit. The rest goes onto lines below.
    """

    name: str
    cells: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    style: str = ""


@dataclass(frozen=True, slots=True)
class CaseLines:
    """The lines of one case, and whether anything in it moved."""

    case: str
    lines: tuple[Line, ...]
    moved: bool


def render_terminal(report: Report, width: int, color: bool, *, verbose: bool = False) -> Clean:
    """Return the report in ``width`` columns, with ANSI colours only where ``color`` is set.

    ``verbose`` shows every comparison. Without it a case in which nothing moved takes one line.
    """
    out = io.StringIO()
    console = text_console(out, max(40, width), color=color)
    for line in _lines(report, console.width, verbose=verbose):
        console.print(line, overflow="fold")
    # clean once more: wrapping made new beginnings of lines, where a runner looks for commands
    return clean_styled(out.getvalue())


def text_console(out: io.StringIO, width: int, *, color: bool) -> Console:
    """Return a console that writes to ``out``, with ANSI colours only where ``color`` is set."""
    return Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        force_jupyter=False,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )


def _lines(report: Report, width: int, *, verbose: bool) -> Iterator[Text]:
    rows = outline(report)
    yield from styled(list(_case_lines(report, verbose=verbose)), width)
    if not verbose and rows.groups["untouched"]:
        yield from _untouched(rows.groups["untouched"], width)
    if not verbose and rows.groups["not_measured"]:
        yield from _not_measured(rows.groups["not_measured"], width)
    yield from _tables(report, width, verbose=verbose)
    yield from _skipped(report, width, verbose=verbose)
    yield from _failures(shown_failures(report), width)
    yield from _why(report, width, verbose=verbose)
    yield from _notes(report, width)
    yield Text()
    yield from _verdict(rows, width)
    yield from wrapped(_timing(report), 0, width, "dim")


def _case_lines(report: Report, *, verbose: bool) -> Iterator[Line]:
    """Yield the lines of every case. Cases in which something moved come first."""
    failed = {failure.case for failure in report.failures}
    rows_of: dict[str, list[Comparison]] = {}
    for row in report.results:
        # a failed row is shown with its failure; those untouched or not measured are counted
        elsewhere = row.status == "failed" and row.case in failed
        counted_only = row.status in {"untouched", "not_measured"}
        if not elsewhere and (verbose or not counted_only):
            rows_of.setdefault(row.case, []).append(row)
    groups = [
        (alone_lines if report.is_one_sided else case_lines)(case, rows, verbose=verbose)
        for case, rows in rows_of.items()
    ]
    for group in sorted(groups, key=lambda group: not group.moved):
        yield from group.lines
        if verbose and (again := replay_of(report, group.case)):
            style = traits("unchanged").style
            yield Line("", extras=(f"again: {clean_line(again, 2000)}",), style=style)


def _untouched(rows: Sequence[Comparison], width: int) -> Iterator[Text]:
    cases = dict.fromkeys(row.case for row in rows)
    text = f"{counted(len(cases), 'case')} ran no changed file"
    yield from wrapped(f"{text} ({clean_line(', '.join(cases), 300)})", 0, width, "dim")


def _not_measured(rows: Sequence[Comparison], width: int) -> Iterator[Text]:
    names = clean_line(first_of([row.case for row in rows], 3), 300)
    style = traits("not_measured").style
    yield from wrapped(f"{counted(len(rows), 'case')} not measured: {names}", 0, width, style)


def case_lines(case: str, rows: Sequence[Comparison], *, verbose: bool) -> CaseLines:
    """Return a case's lines: rows that moved, the main metric, and the names of undecided metrics.

    ``verbose`` shows all rows, each with what to blame.
    """
    moved = [
        row for row in rows if traits(row.status).group == "moved" and (verbose or not row.follows)
    ]
    loud = [row for row in moved if row.gate != "info"]
    shown = list(rows) if verbose else loud
    main = next((row for row in rows if row.metric == "latency_p50"), rows[0])
    if not verbose and main not in loud and not any(row.status == "failed" for row in loud):
        shown = [*loud, main]
    rest = [row for row in rows if row not in shown]
    lines = [Line(clean_line(case))]
    for row in shown:
        cause = cause_of(row) if verbose else ""
        lines.append(_compared(row, cause, verbose=verbose))
    for name, group in GROUPS.items():
        if group.in_terminal and (named := [row for row in rest if group_of(row) == name]):
            names = ", ".join(map(_name_and_reach, named))
            style = traits(named[0].status).style
            lines.append(Line("", extras=(f"{group.in_terminal}: {names}",), style=style))
    return CaseLines(case, tuple(lines), bool(loud))


def _name_and_reach(row: Comparison) -> str:
    """Return a row's metric, with the least share that would have shown if that is too much."""
    if row.difference is not None or not row.detectable or row.detectable <= row.threshold:
        return clean_line(row.metric)
    return f"{clean_line(row.metric)} (only a change of {format_share(row.detectable)} would show)"


def alone_lines(case: str, rows: Sequence[Comparison], *, verbose: bool) -> CaseLines:
    """Return the numbers of a case that was measured alone, all metrics where ``verbose``."""
    shown = [row for row in rows if verbose or row.gate != "info"] or list(rows)
    lines = (
        Line(
            "",
            (clean_line(row.metric), clean_line(side_text(row.head, row.unit))),
            (_bracketed(clean_line(side_interval(row.head, row.unit))), _remark(row)),
        )
        for row in shown
    )
    return CaseLines(case, (Line(clean_line(case)), *lines), moved=False)


def styled(lines: Sequence[Line], width: int) -> Iterator[Text]:
    """Yield the lines laid out in ``width`` columns. Extras that don't fit go onto lines below."""
    celled = [line.cells for line in lines if len(line.cells) > 1]
    widths = [
        max(cell_len(cells[index]) if index < len(cells) else 0 for cells in celled)
        for index in range(max(map(len, celled), default=0))
    ]
    for line in lines:
        if line.name:
            yield Text(line.name, "bold")
            continue
        yield from _laid_out(line, widths, width)


def _laid_out(line: Line, widths: Sequence[int], width: int) -> Iterator[Text]:
    style = line.style
    padded = (
        cell + " " * (column - cell_len(cell))
        for cell, column in zip(line.cells, widths, strict=False)
    )
    text = " " * _INDENT + _GAP.join(padded)
    extras = [extra for extra in line.extras if extra]
    while line.cells and extras and cell_len(text + _GAP + extras[0]) <= width:
        text += _GAP + extras.pop(0)
    if line.cells and cell_len(text.rstrip()) > width:
        yield from wrapped(_GAP.join(line.cells), _INDENT, width, style)
    elif line.cells:
        yield Text(text.rstrip(), style)
    if extras:
        indent = _INDENT * 2 if line.cells else _INDENT
        yield from wrapped(_GAP.join(extras), indent, width, style)


def wrapped(text: str, indent: int, width: int, style: str = "") -> Iterator[Text]:
    """Yield ``text`` wrapped at blanks, each line indented. A number stays with its unit."""
    line = ""
    for word in _UNIT.sub(_BOUND, text).split(" "):
        if line and cell_len(line) + 1 + cell_len(word) > width - indent:
            yield Text(" " * indent + line, style)
            line = ""
        line = f"{line} {word.replace(_BOUND, ' ')}".strip()
    yield Text(" " * indent + line, style)


def _compared(row: Comparison, cause: Cause, *, verbose: bool) -> Line:
    blame = f"likely cause: {BLAME[cause]}" if cause else ""
    if not has_numbers(row):
        remark = f"{row.status.replace('_', ' ')}: {clean_prose(note(row), 400)}"
        return Line("", extras=(remark.removesuffix(": "), blame), style=_style(row))
    sides = f"{side_text(row.base, row.unit)} → {side_text(row.head, row.unit)}"
    if row.base is None:
        sides = side_text(row.head, row.unit)
    interval = _bracketed(clean_line(interval_text(row)).replace(" … ", "…").replace(" %", ""))
    quiet = row.status == "unchanged" and not verbose
    remarks = (
        blame,
        _small_change(row) if quiet else _remark(row),
        statistics_text(row) if verbose else "",
    )
    return Line(
        "",
        (
            status_text(row),
            clean_line(row.metric),
            clean_line(sides),
            clean_line(change_text(row)),
        ),
        (interval, "; ".join(filter(None, remarks))),
        _style(row),
    )


def _style(row: Comparison) -> str:
    return _ACCEPTED if row.accepted else traits(row.status).style


def _small_change(row: Comparison) -> str:
    """Return why a significant change doesn't count: it is below the threshold, or too small."""
    codes = {"below-threshold", "small-effect"}
    small = (finding for finding in row.findings if finding.code in codes)
    return clean_prose("; ".join(map(words, small)), 400)


def _remark(row: Comparison) -> str:
    return clean_prose(note(row), 400)


def _bracketed(text: str) -> str:
    return f"({text})" if text else ""


def _tables(report: Report, width: int, *, verbose: bool) -> Iterator[Text]:
    for table in case_tables(report, every=verbose):
        yield Text()
        lines = (Line("", tuple(map(clean_line, cells))) for cells in table.lines)
        yield from styled([Line(clean_line(table.title)), *lines], width)
        if table.advice:
            yield from wrapped(clean_prose(table.advice, 600), _INDENT, width)


def _skipped(report: Report, width: int, *, verbose: bool) -> Iterator[Text]:
    skipped: dict[str, list[str]] = {}
    for case, why in report.skipped.items():
        skipped.setdefault(why, []).append(clean_line(case))
    lines = [
        f"{first_of(cases, _MOST_NAMES)}  skipped: {clean_prose(why)}"
        for why, cases in skipped.items()
    ]
    if verbose and report.not_measured:
        metrics: dict[str, list[str]] = {}
        for metric, why in report.not_measured.items():
            metrics.setdefault(clean_prose(why), []).append(clean_line(metric))
        lacking = (f"{', '.join(names)} ({why})" for why, names in metrics.items())
        lines.append(f"not measured: {'; '.join(lacking)}")
    for line in lines:
        yield from (
            [Text(line, "dim")] if cell_len(line) <= width else wrapped(line, 0, width, "dim")
        )


def _failures(failures: Sequence[Failure], width: int) -> Iterator[Text]:
    for failure, cases in grouped_failures(failures):
        where = f"failed on {failure.side} in {failure.stage} ({failure.kind}): {failure.message}"
        yield Text()
        yield from wrapped(clean_line(first_of(cases, _MOST_NAMES), 1000), 0, width, "bold")
        yield from wrapped(clean_prose(where, 600), 2, width, "red")
        for line in clean_block(failure.log_tail, _LOG_LINES).splitlines():
            yield Text(f"    {line}", "dim")


def _why(report: Report, width: int, *, verbose: bool) -> Iterator[Text]:
    known = whys(report)
    told = {reason.case for reason in known}
    unknown = [
        why for why in report.why if not why.differences and (why.untold or why.case not in told)
    ]
    if known or unknown:
        yield Text()
        yield Text("Why", "bold")
    for reason in known:
        about = f"{reason.case} {reason.metric}".rstrip()
        place = f", {reason.place}" if reason.place else ""
        yield from wrapped(clean_prose(f"{about}: {reason.text}{place}", 600), 2, width)
        for line in reason.more if verbose else ():
            yield from wrapped(clean_prose(line, 600), 4, width, "dim")
    for silent in unknown:
        for line in tuple(unavailable_lines(silent)) or (UNEXPLAINED,):
            yield from wrapped(clean_prose(f"{silent.case}: {line}", 600), 2, width, "dim")


def _notes(report: Report, width: int) -> Iterator[Text]:
    if report.notes:
        yield Text()
    for text in report.notes:
        yield from wrapped(f"note: {clean_prose(text, 600)}", 0, width, "dim")
    if report.base_environment is not None:
        yield Text("note: base and head were measured in different environments", "yellow")


def _verdict(rows: Outline, width: int) -> Iterator[Text]:
    report = rows.report
    status = "run" if report.is_one_sided else report.verdict.status
    style = "bold" if report.is_one_sided else _VERDICT_STYLES[report.verdict.status]
    text = f"perfci: {status} — {clean_prose(headline(rows), 600)}"
    yield from wrapped(text, 0, width, style)
    if injected := injected_text(report):
        yield from wrapped(clean_line(injected.upper(), 600), 2, width, "bold reverse yellow")
    if part := part_text(report):
        yield from wrapped(clean_line(part), 2, width, "bold reverse yellow")
    for reason in (*other_reasons(rows), *undecided_warnings(report)):
        yield from wrapped(clean_prose(reason, 600), 2, width)


def _timing(report: Report) -> str:
    timing = report.timing
    share = timing.measured_s / timing.wall_s if timing.wall_s > 0 else None
    spent = f", {format_share(round(share, 2))} of it measuring" if share is not None else ""
    return f"{counted(timing.rounds, 'round')} in {format_duration(timing.wall_s)}{spent}"
