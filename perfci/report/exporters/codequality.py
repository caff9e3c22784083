"""GitLab's code quality report: the lines that a merge request's diff shows findings at.

The format is GitLab's subset of CodeClimate's. GitLab shows a finding as new whose fingerprint the
target branch's report hasn't got, so no figure of a measurement and no line's number is in one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from perfci.model.report import Report
from perfci.report.annotations import Annotation, annotations_of
from perfci.report.clean import Clean, clean_json, clean_line

if TYPE_CHECKING:
    from perfci.model.report import Report
    from perfci.report.clean import Clean

HELP = "Write GitLab's code quality report here: regressions at the lines that are to blame."
_SEVERITIES = {"failure": "major", "warning": "minor", "notice": "info"}
_DIGITS = re.compile(r"\d+")


def render(report: Report) -> Clean:
    """Return the report's findings as a JSON list."""

    return render_codequality(report)


def render_codequality(report: Report) -> Clean:
    """Return the findings, the gravest first; an empty list where there is none."""
    seen: Counter[str] = Counter()
    findings: list[dict[str, Any]] = []
    for one in annotations_of((report,)):
        key = _key(one)
        seen[key] += 1  # the same said of two lines of a file: the second is another finding
        findings.append(
            {
                "description": clean_line(one.message, 1000),
                "check_name": one.title,
                "fingerprint": hashlib.sha256(f"{key} {seen[key]}".encode()).hexdigest(),
                "severity": _SEVERITIES[one.level],
                "location": {"path": one.path, "lines": {"begin": one.line}},
            }
        )
    return clean_json(json.dumps(findings, indent=1) + "\n")


def _key(one: Annotation) -> str:
    said = _DIGITS.sub("#", one.text)
    return json.dumps([one.path, one.title, said, sorted(one.cases)])
