"""The results as CSV, for spreadsheets: the table that ``Report.to_frame`` has."""

from __future__ import annotations

import csv
import io

from perfci.model.frame import COLUMNS, Cell, cells
from perfci.model.report import Report
from perfci.render.clean import clean_line

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""Full-width ones, too: spreadsheets in some languages compute from them."""


def render_csv(report: Report) -> str:
    """Return a row for each comparison; what a spreadsheet would compute gets an apostrophe."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in report.results:
        writer.writerow({name: spreadsheet_cell(value) for name, value in cells(row).items()})
    return out.getvalue()


def spreadsheet_cell(value: Cell) -> Cell:
    """Return ``value`` so that no spreadsheet computes it: such a text gets an apostrophe."""
    if not isinstance(value, str):
        return value
    text = clean_line(value, 1000)
    return f"'{text}" if text.startswith(_FORMULA) else text
