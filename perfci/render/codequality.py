"""GitLab's code quality report, of the lines that a report can name."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from typing import Any

from perfci.model.report import Report
from perfci.render.annotations import Annotation, annotations_of
from perfci.render.clean import Clean, clean_json, clean_line

_SEVERITIES = {"failure": "major", "warning": "minor", "notice": "info"}
_DIGITS = re.compile(r"\d+")


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
