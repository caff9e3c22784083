"""``perfci.report/1``, the report file: for programs, and for perfci to read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfci.model.report import Report
    from perfci.report.clean import Clean

HELP = "Write the report file here."


def render(report: Report) -> Clean:
    """Return the report file."""
    from perfci.report.report_json import render_json

    return render_json(report)
