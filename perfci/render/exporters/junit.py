"""JUnit XML, for CI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfci.render.clean import Clean, clean_lines

if TYPE_CHECKING:
    from perfci.model.report import Report

HELP = "Write JUnit XML here."


def render(report: Report) -> Clean:
    """Return the report as a JUnit test suite."""
    from perfci.render.junit import render_junit

    return clean_lines(render_junit(report))
