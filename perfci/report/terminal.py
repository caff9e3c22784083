"""The report for people at a terminal: the cases, the failures, the reasons, last the verdict.

A row's remarks stand on its own line if they fit there, else below it. rich's tables can't do that,
so the columns are laid out here.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from perfci.model.report import Report
from perfci.model.status import traits
from perfci.report.clean import Clean, clean_block, clean_line, clean_prose, clean_styled
from perfci.report.groups import group_of
from perfci.report.replay import replay_of
from perfci.report.rows import BLAME, Row
from perfci.report.view import ReportView
from perfci.report.why import UNEXPLAINED, by_reason, unavailable_lines
from perfci.units import counted, first_of, format_share

_ACCEPTED = "bold yellow"
_INDENT = 2
_GAP = "  "
_BLANK_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[nµm]?s|[KMG]?i?B|min|h|%)(?![^\W_]))")
_UNBREAKABLE_BLANK = "\N{NO-BREAK SPACE}"
"""Stands for such a blank while a text is wrapped."""
_MOST_CHARACTERS = 2_000
"""Characters of a paragraph."""
_VERDICT_STYLES = {
    "pass": "bold green",
    "fail": "bold red",
    "inconclusive": "bold yellow",
    "error": "bold red",
    "run": "bold",
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


def render_terminal(report: Report, width: int, color: bool, *, verbose: bool = False) -> Clean:
    """Return the report in ``width`` columns, with ANSI colours only where ``color`` is set.

    ``verbose`` shows every comparison. Without it, a case in which nothing moved has one, with its
    remarks.
    """
    out = io.StringIO()
    console = text_console(out, max(40, width), color=color)
    for line in _lines(ReportView(report), console.width, verbose=verbose):
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


def _lines(view: ReportView, width: int, *, verbose: bool) -> Iterator[Text]:
    yield from laid_out(list(_case_lines(view, verbose=verbose)), width)
    if not verbose:
        for group, does in (("untouched", "ran no changed file"), ("not_measured", "not measured")):
            if rows := view.groups[group]:
                names = list(dict.fromkeys(row.case for row in rows))
                text = f"{counted(len(names), 'case')} {does}: {first_of(names, _MOST_NAMES)}"
                yield from wrapped(text, 0, width, _style(rows[0]))
    for table in view.modes(every=verbose):
        yield Text()
        yield from laid_out(
            [Line(f"{table.case} by mode"), *(Line("", cells) for cells in table.lines)], width
        )
        yield from wrapped(table.advice, _INDENT, width)
    yield from _skipped(view.report, width, verbose=verbose)
    for failure, cases in view.failures:
        where = f"failed on {failure.side} in {failure.stage} ({failure.kind}): {failure.message}"
        yield Text()
        yield from wrapped(first_of(cases, _MOST_NAMES), 0, width, "bold")
        yield from wrapped(where, 2, width, "red")
        for line in clean_block(failure.log_tail, _LOG_LINES).splitlines():
            yield Text(f"    {line}", "dim")
    yield from _why(view, width, verbose=verbose)
    yield from _notes(view.report, width)
    yield Text()
    yield from _verdict(view, width)


def _case_lines(view: ReportView, *, verbose: bool) -> Iterator[Line]:
    """Yield the lines of every case. Cases in which something moved come first."""
    rows_of: dict[str, list[Row]] = {}
    for row in view.rows:
        counted_only = row.comparison.status in {"untouched", "not_measured"}
        if not view.is_shown_as_failure(row) and (verbose or not counted_only):
            rows_of.setdefault(row.case, []).append(row)
    alone = view.report.is_one_sided
    cases = list(rows_of.values())
    if not alone:
        cases.sort(key=lambda rows: not any(map(_is_loud, rows)))
    for rows in cases:
        case = rows[0].case
        yield Line(case)
        yield from (alone_lines if alone else compared_lines)(rows, verbose=verbose)
        if verbose and (again := replay_of(view.report, case)):
            yield Line("", extras=(f"again: {again}",), style=traits("unchanged").style)


def _is_loud(row: Row) -> bool:
    """Return whether a row moved, and not only for information, or looks slower."""
    moved = traits(row.comparison.status).group == "moved"
    informs = row.comparison.gate == "info" or row.comparison.follows
    return (moved and not informs) or row.looks_slower


def compared_lines(rows: Sequence[Row], *, verbose: bool) -> Iterator[Line]:
    """Yield a case's lines: rows that moved, the main metric, and the names of undecided metrics.

    ``verbose`` shows all rows, each with what to blame.
    """
    shown = list(rows) if verbose else [row for row in rows if _is_loud(row)]
    main = next((row for row in rows if row.comparison.metric == "latency_p50"), rows[0])
    if main not in shown and not any(row.comparison.status == "failed" for row in shown):
        shown.append(main)
    for row in shown:
        yield _compared(row, verbose=verbose)
    if rest := [row for row in rows if row not in shown and group_of(row) == "undecided"]:
        names = ", ".join(map(_undecided_metric, rest))
        yield Line("", extras=(f"not decided: {names}",), style=_style(rest[0]))


def _undecided_metric(row: Row) -> str:
    """Return a row's metric. If only a change beyond its threshold was detectable, say so."""
    metric, detectable = row.comparison.metric, row.comparison.detectable
    if row.is_absolute or not detectable or detectable <= row.comparison.threshold:
        return metric
    return f"{metric} (only a change of {format_share(detectable)} would have been detected)"


def alone_lines(rows: Sequence[Row], *, verbose: bool) -> Iterator[Line]:
    """Yield the numbers of a case that was measured alone, all metrics where ``verbose``."""
    shown = [row for row in rows if verbose or row.comparison.gate != "info"] or rows
    for row in shown:
        interval = f"({row.head_interval})" if row.head_interval else ""
        yield Line("", (row.comparison.metric, row.after), (interval, row.note))


def _compared(row: Row, *, verbose: bool) -> Line:
    blame = f"likely cause: {BLAME[row.cause]}" if verbose and row.cause else ""
    if not row.has_numbers:
        remark = f"{row.status}: {row.note}".removesuffix(": ")
        return Line("", extras=("; ".join(filter(None, (remark, blame))),), style=_style(row))
    if verbose:
        facts = (f"{term} {text}" for term, text in row.facts)
        remarks = "; ".join(filter(None, (blame, row.remarks, *facts)))
    else:
        remarks = row.remarks if row.comparison.status == "unchanged" else row.note
    cells = (row.status, row.metric, row.values, row.change)
    return Line("", cells, (row.bracketed_interval, remarks), _style(row))


def _style(row: Row) -> str:
    return _ACCEPTED if row.comparison.accepted else traits(row.comparison.status).style


def laid_out(lines: Sequence[Line], width: int) -> Iterator[Text]:
    """Yield the lines laid out in ``width`` columns. Extras that don't fit go onto lines below."""
    cleaned = [tuple(map(clean_line, line.cells)) for line in lines]
    columns = max(map(len, cleaned), default=0)
    widths = [
        max(cell_len(cells[n]) for cells in cleaned if n < len(cells)) for n in range(columns)
    ]
    for line, cells in zip(lines, cleaned, strict=True):
        if line.name:
            yield Text(clean_line(line.name), "bold")
            continue
        padded = (
            cell + " " * (column - cell_len(cell))
            for cell, column in zip(cells, widths, strict=False)
        )
        text = " " * _INDENT + _GAP.join(padded)
        extras = [clean_prose(extra, _MOST_CHARACTERS) for extra in line.extras if extra]
        while cells and extras and cell_len(text + _GAP + extras[0]) <= width:
            text += _GAP + extras.pop(0)
        if cells and cell_len(text.rstrip()) > width:
            yield from wrapped(_GAP.join(cells), _INDENT, width, line.style)
        elif cells:
            yield Text(text.rstrip(), line.style)
        yield from wrapped(_GAP.join(extras), _INDENT * (2 if cells else 1), width, line.style)


def wrapped(text: str, indent: int, width: int, style: str = "") -> Iterator[Text]:
    """Yield a cleaned paragraph, each line indented. A number stays with its unit."""
    bound = _BLANK_BEFORE_UNIT.sub(_UNBREAKABLE_BLANK, clean_prose(text, _MOST_CHARACTERS))
    for line in textwrap.wrap(
        bound, width - indent, break_long_words=False, break_on_hyphens=False
    ):
        yield Text(" " * indent + line.replace(_UNBREAKABLE_BLANK, " "), style)


def _skipped(report: Report, width: int, *, verbose: bool) -> Iterator[Text]:
    for why, cases in by_reason(report.skipped).items():
        yield from wrapped(f"{first_of(cases, _MOST_NAMES)} skipped: {why}", 0, width, "dim")
    if verbose and report.not_measured:
        metrics = by_reason(report.not_measured).items()
        lacking = "; ".join(f"{', '.join(names)} ({why})" for why, names in metrics)
        yield from wrapped(f"not measured: {lacking}", 0, width, "dim")


def _why(view: ReportView, width: int, *, verbose: bool) -> Iterator[Text]:
    explained = {explanation.case for explanation in view.whys}
    unexplained = [
        looked
        for looked in view.report.why
        if not looked.differences and (looked.untold or looked.case not in explained)
    ]
    if view.whys or unexplained:
        yield Text()
        yield Text("Why", "bold")
    for explanation in view.whys:
        about = f"{explanation.case} {explanation.metric}".rstrip()
        yield from wrapped(f"{about}: {explanation.placed}", 2, width)
        for line in explanation.more if verbose else ():
            yield from wrapped(line, 4, width, "dim")
    for looked in unexplained:
        for line in tuple(unavailable_lines(looked)) or (UNEXPLAINED,):
            yield from wrapped(f"{looked.case}: {line}", 2, width, "dim")


def _notes(report: Report, width: int) -> Iterator[Text]:
    if report.notes:
        yield Text()
    for text in report.notes:
        yield from wrapped(f"note: {text}", 0, width, "dim")
    if report.base_environment is not None:
        yield Text("note: base and head were measured in different environments", "yellow")


def _verdict(view: ReportView, width: int) -> Iterator[Text]:
    text = f"perfci: {view.word} — {view.title}"
    yield from wrapped(text, 0, width, _VERDICT_STYLES[view.word])
    for warning in view.warnings:
        yield from wrapped(warning, 2, width, "bold reverse yellow")
    for reason in view.reasons:
        yield from wrapped(reason, 2, width)
    yield from wrapped(view.spent, 0, width, "dim")
