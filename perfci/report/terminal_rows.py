"""A case's lines on a terminal, as cells first: their columns are as wide as all of them need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from perfci.record.report import Comparison
from perfci.report.clean import clean_line
from perfci.report.rows import (
    change_text,
    has_numbers,
    interval_text,
    note,
    side_interval,
    side_text,
)

_STYLES = {
    "regressed": "red",
    "failed": "red",
    "improved": "green",
    "inconclusive": "yellow",
    "not_comparable": "yellow",
    "unchanged": "dim",
}
_INDENT = 2
_GAP = "  "
_UNIT = re.compile(r"(?<=\d) (?=(?:[nµm]?s|[KMG]?i?B|GiB|min|h|%)(?![^\W_]))")
_BOUND = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Line:
    """A case's name alone (no cells), or one comparison's cells under it, and what follows.

    ``extras`` follow the cells on their line as far as they fit, the rest goes underneath.
    """

    name: str
    cells: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    status: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """The lines of one case, and whether anything in it moved."""

    lines: tuple[Line, ...]
    moved: bool


def case_lines(case: str, rows: Sequence[Comparison], *, verbose: bool) -> Group:
    """Return a case's lines: every row that moved, the main metric, and a count of the rest."""
    moved = [row for row in rows if row.status in {"regressed", "improved", "failed"}]
    loud = [row for row in moved if row.gate != "info"]
    shown = list(rows) if verbose else loud
    main = next((row for row in rows if row.metric == "latency_p50"), rows[0])
    if not verbose and main not in loud and not any(row.status == "failed" for row in loud):
        shown = [*loud, main]
    rest = [row for row in rows if row not in shown]
    lines = [Line(clean_line(case)), *(_compared(row, verbose=verbose) for row in shown)]
    undecided = [row for row in rest if row.status == "inconclusive" and row.gate == "fail"]
    if undecided:
        names = ", ".join(clean_line(row.metric) for row in undecided)
        lines.append(Line("", extras=(f"not decided: {names}",), status="inconclusive"))
    return Group(tuple(lines), bool(loud))


def alone_lines(case: str, rows: Sequence[Comparison], *, verbose: bool) -> Group:
    """Return the numbers of a case that was measured alone; all metrics where ``verbose``."""
    shown = [row for row in rows if verbose or row.gate != "info"] or list(rows)
    lines = (
        Line(
            "",
            (clean_line(row.metric), clean_line(side_text(row.head, row.unit))),
            (_bracketed(clean_line(side_interval(row.head, row.unit))), _remark(row)),
        )
        for row in shown
    )
    return Group((Line(clean_line(case)), *lines), moved=False)


def styled(lines: Sequence[Line], width: int) -> Iterator[Text]:
    """Lay the lines out in ``width`` columns; what doesn't fit goes onto lines of its own."""
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
    style = _STYLES.get(line.status, "")
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
    """Break at blanks, never between a number and its unit, with the same indent on every line."""
    line = ""
    for word in _UNIT.sub(_BOUND, text).split(" "):
        if line and cell_len(line) + 1 + cell_len(word) > width - indent:
            yield Text(" " * indent + line, style)
            line = ""
        line = f"{line} {word.replace(_BOUND, ' ')}".strip()
    yield Text(" " * indent + line, style)


def _compared(row: Comparison, *, verbose: bool) -> Line:
    if not has_numbers(row):
        remark = f"{row.status.replace('_', ' ')}: {clean_line(note(row), 400)}"
        return Line("", extras=(remark.removesuffix(": "),), status=row.status)
    sides = f"{side_text(row.base, row.unit)} → {side_text(row.head, row.unit)}"
    if row.base is None:
        sides = side_text(row.head, row.unit)
    interval = _bracketed(clean_line(interval_text(row)).replace(" … ", "…").replace(" %", ""))
    quiet = row.status == "unchanged" and not verbose
    return Line(
        "",
        (
            row.status.replace("_", " "),
            clean_line(row.metric),
            clean_line(sides),
            clean_line(change_text(row)),
        ),
        (interval, "" if quiet else _remark(row)),
        row.status,
    )


def _remark(row: Comparison) -> str:
    return clean_line(note(row), 400)


def _bracketed(text: str) -> str:
    return f"({text})" if text else ""
