"""The formats by name. Each renderer is imported where it is asked for."""

from __future__ import annotations

from perfci.errors import UsageError
from perfci.model.report import Report
from perfci.render.clean import Clean, clean_lines

FORMATS = ("terminal", "markdown", "json", "junit", "csv")


def render(report: Report, form: str) -> Clean:
    """Return ``report`` in one of ``FORMATS``; UsageError on another name."""
    match form:
        case "terminal":
            from perfci.render.terminal import render_terminal

            return render_terminal(report, width=100, color=False)
        case "markdown":
            from perfci.render.markdown import render_markdown

            return clean_lines(render_markdown(report))
        case "json":
            from perfci.render.report_json import render_json

            return render_json(report)
        case "junit":
            from perfci.render.junit import render_junit

            return clean_lines(render_junit(report))
        case "csv":
            from perfci.render.table import render_csv

            return clean_lines(render_csv(report))
    raise UsageError(
        "unknown-format", f"there is no format {form!r}", f"Choose one of: {', '.join(FORMATS)}."
    )
