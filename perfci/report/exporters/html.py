"""One page to open in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfci.model.report import Report
    from perfci.report.clean import Clean

HELP = "Write the report as one HTML page here."


def render(report: Report) -> Clean:
    """Return the report as a page that needs no other file."""
    from perfci.report.page import render_page

    return render_page(report)
