"""JUnit XML for CI: a test case for each case and gating metric."""

from __future__ import annotations

import re
from typing import assert_never
from xml.etree import ElementTree as ET

from perfci.model.case import Failure
from perfci.model.report import Comparison, Report
from perfci.model.status import traits
from perfci.report.clean import Clean, clean_block, clean_line, clean_lines
from perfci.report.outline import gates, injected_text
from perfci.report.rows import change_text, interval_text, measured_text, note, side_text

HELP = "Write JUnit XML here."
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 can't hold."""


def render(report: Report) -> Clean:
    """Return the report as a JUnit test suite.

    A regression is a failure, a failed measurement is an error. A row that is undecided or can't be
    compared is skipped, with its reason.
    """
    suite = ET.Element("testsuite", name="perfci", timestamp=_xml(report.created_at))
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("verdict", report.verdict.status),
        ("environment", report.environment.key),
        ("base", report.base.sha if report.base else ""),
        ("head", report.head.sha),
        ("injected", injected_text(report)),
    ):
        ET.SubElement(properties, "property", name=name, value=_xml(value))
    failed = {failure.case for failure in report.failures}
    for row in report.results:
        if gates(row) and not (row.status == "failed" and row.case in failed):
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


def _add_row(suite: ET.Element, row: Comparison, *, alone: bool) -> None:
    test = ET.SubElement(suite, "testcase", classname=_xml(row.case), name=_xml(row.metric))
    if alone and row.status == "new":
        ET.SubElement(test, "system-out").text = _xml(side_text(row.head, row.unit))
        return
    outcome = traits(row.status).junit
    match outcome:
        case "failure":
            moved = ET.SubElement(test, "failure", type=row.status, message=_xml(_change(row)))
            moved.text = _xml(note(row))
        case "error":
            ET.SubElement(test, "error", type=row.status, message=_xml(note(row)))
        case "skipped":
            reason = f"{row.status}: {note(row)}" if note(row) else row.status
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


def _change(row: Comparison) -> str:
    sides = f"{side_text(row.base, row.unit)} → {side_text(row.head, row.unit)}"
    interval = f" ({interval_text(row)})" if interval_text(row) else ""
    on = measured_text(row)
    return f"{row.status}: {sides}, {change_text(row)}{interval}" + (f"; {on}" if on else "")


def _xml(text: str) -> str:
    return _NOT_XML.sub("", clean_line(text, 600))
