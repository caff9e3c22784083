"""GitLab's code quality report: the lines that a merge request's diff shows findings at.

The format is GitLab's subset of CodeClimate's. GitLab shows a finding as new whose fingerprint the
target branch's report hasn't got, so no figure of a measurement and no line's number is in one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfci.model.report import Report
    from perfci.render.clean import Clean

HELP = "Write GitLab's code quality report here: regressions at the lines that are to blame."


def render(report: Report) -> Clean:
    """Return the report's findings as a JSON list."""
    from perfci.render.codequality import render_codequality

    return render_codequality(report)
