"""JUnit XML for CI: a test case for each case and gating metric."""

from __future__ import annotations

import re
from typing import assert_never
from xml.etree import ElementTree as ET

from perfci.model.case import Failure
from perfci.model.report import Report
from perfci.model.status import traits
from perfci.report.clean import Clean, clean_block, clean_line, clean_lines
from perfci.report.rows import Row
from perfci.report.view import ReportView

HELP = "Write JUnit XML here."
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 can't hold."""


def render(report: Report) -> Clean:
    """Return the report as a JUnit test suite.

    A regression is a failure, a failed measurement is an error. A row that is undecided or can't be
    compared is skipped, with its reason.
    """
    view = ReportView(report)
    suite = ET.Element("testsuite", name="perfci", timestamp=_xml(report.created_at))
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("verdict", report.verdict.status),
        ("environment", report.environment.key),
        ("base", report.base.sha if report.base else ""),
        ("head", report.head.sha),
        ("warnings", "; ".join(view.warnings)),
    ):
        ET.SubElement(properties, "property", name=name, value=_xml(value))
    for row in view.rows:
        if row.gates and not view.is_shown_as_failure(row):
            _add_row(suite, row, alone=report.is_one_sided)
    for failure in report.failures:
        _add_failure(suite, failure)
    for case, reason in report.skipped.items():
        test = ET.SubElement(suite, "testcase", classname=_xml(case), name="skipped")
        ET.SubElement(test, "skipped", message=_xml(reason))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("time", f"{report.timing.wall_s:.3f}")
    ET.indent(suite)
    text = ET.tostring(suite, "unicode")
    return clean_lines(f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n')


def _add_row(suite: ET.Element, row: Row, *, alone: bool) -> None:
    status, metric = row.comparison.status, row.comparison.metric
    test = ET.SubElement(suite, "testcase", classname=_xml(row.case), name=_xml(metric))
    if alone and status == "new":
        ET.SubElement(test, "system-out").text = _xml(row.after)
        return
    outcome = traits(status).junit
    match outcome:
        case "failure":
            moved = ET.SubElement(test, "failure", type=status, message=_xml(_change(row)))
            moved.text = _xml(row.note)
        case "error":
            ET.SubElement(test, "error", type=status, message=_xml(row.note))
        case "skipped":
            reason = f"{status}: {row.note}".removesuffix(": ")
            ET.SubElement(test, "skipped", message=_xml(reason))
        case "passed":
            ET.SubElement(test, "system-out").text = _xml(_change(row))
        case _:
            assert_never(outcome)


def _add_failure(suite: ET.Element, failure: Failure) -> None:
    name = f"{failure.side} {failure.stage}"
    test = ET.SubElement(suite, "testcase", classname=_xml(failure.case), name=_xml(name))
    error = ET.SubElement(test, "error", type=_xml(failure.kind), message=_xml(failure.message))
    error.text = _NOT_XML.sub("", clean_block(failure.log_tail))


def _change(row: Row) -> str:
    change = (
        f"{row.comparison.status}: {row.values}, {row.change} {row.bracketed_interval}".rstrip()
    )
    return f"{change}; {row.sample}".removesuffix("; ")


def _xml(text: str) -> str:
    return _NOT_XML.sub("", clean_line(text, 600))
