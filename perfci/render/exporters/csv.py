"""The table of results, for spreadsheets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfci.render.clean import Clean, clean_lines

if TYPE_CHECKING:
    from perfci.model.report import Report

HELP = "Write the table of results here."


def render(report: Report) -> Clean:
    """Return the results as CSV."""
    from perfci.render.table import render_csv

    return clean_lines(render_csv(report))
