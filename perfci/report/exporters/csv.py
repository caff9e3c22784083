"""The results as CSV, for spreadsheets: the same table as ``Report.to_frame`` returns."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from perfci.model.report import COLUMNS, Cell, cells
from perfci.report.clean import Clean, clean_line, clean_lines

if TYPE_CHECKING:
    from perfci.model.report import Report

HELP = "Write the table of results here."
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""First characters of a formula. Spreadsheets in some languages also take full-width signs."""


def render(report: Report) -> Clean:
    """Return a row for each comparison. A text that looks like a formula gets an apostrophe."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in report.results:
        writer.writerow({name: spreadsheet_cell(value) for name, value in cells(row).items()})
    return clean_lines(out.getvalue())


def spreadsheet_cell(value: Cell) -> Cell:
    """Return ``value``, with an apostrophe in front if a spreadsheet would compute it."""
    if not isinstance(value, str):
        return value
    text = clean_line(value, 1000)
    return f"'{text}" if text.startswith(_FORMULA) else text
