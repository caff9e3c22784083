"""The pull-request comment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfci.report.clean import Clean, clean_lines

if TYPE_CHECKING:
    from perfci.model.report import Report

HELP = "Write the comment here."


def render(report: Report) -> Clean:
    """Return the comment as GitHub Markdown."""
    from perfci.report.markdown import render_markdown

    return clean_lines(render_markdown(report))
