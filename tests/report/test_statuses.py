"""One table of statuses: every renderer shows a row of each of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import get_args
from xml.etree import ElementTree as ET

import pytest

from perfci.finding import stated
from perfci.model.case import Failure
from perfci.model.report import Report, Verdict
from perfci.model.status import Status, traits
from perfci.report.exporters.html import render as render_html
from perfci.report.exporters.json import render as render_json
from perfci.report.exporters.junit import render as render_junit
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.reading import read_report
from perfci.report.terminal import render_terminal
from perfci.report.view import ReportView
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from tests.report.examples import bare, rich_report


def named(status: str) -> str:
    """Return a case's name that no renderer breaks or escapes."""
    return f"case{status.replace('_', '')}"


STATUSES: tuple[Status, ...] = get_args(Status)
EVERY = rich_report(
    verdict=Verdict("fail", (stated("for the test"),)),
    results=tuple(bare(named(status), status, "why") for status in STATUSES),
    failures=(),
    skipped={},
    not_measured={},
    explanations=(),
    definitions=(),
    durations={},
    why=(),
)
RENDERERS: tuple[Callable[[Report], str], ...] = (
    render_markdown,
    lambda report: render_terminal(report, 120, False, verbose=True),
    lambda report: render_terminal(report, 120, False),
    render_junit,
    render_html,
    render_json,
)


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("status", STATUSES)
def test_every_renderer_shows_a_row_of_each_status(
    renderer: Callable[[Report], str], status: Status
) -> None:
    assert named(status) in renderer(EVERY)


@pytest.mark.parametrize("status", STATUSES)
def test_junit_calls_nothing_passed_that_was_not_compared(status: Status) -> None:
    suite = ET.fromstring(render_junit(EVERY))
    (test,) = suite.findall(f"testcase[@classname='{named(status)}']")
    outcomes = {child.tag for child in test} & {"failure", "error", "skipped"}
    assert outcomes == ({traits(status).junit} - {"passed"})
    assert (traits(status).junit == "passed") == (status in {"unchanged", "improved"})


@pytest.mark.parametrize("status", STATUSES)
def test_a_row_of_each_status_stands_in_one_group(status: Status) -> None:
    groups = ReportView(EVERY).groups.values()
    assert [row.comparison.status for rows in groups for row in rows].count(status) == 1


@pytest.mark.parametrize("status", [status for status in STATUSES if traits(status).lacks])
def test_a_report_of_rows_without_numbers_passes_nothing_and_is_believed(status: Status) -> None:
    row = bare(named(status), status, "why")
    failures = (Failure(row.case, "head", "setup", "Error", "why"),) if status == "failed" else ()
    verdict = decide((row,), failures, Policy())
    assert verdict.status != "pass", "nothing was measured"
    report = replace(EVERY, results=(row,), failures=failures, verdict=verdict)
    assert read_report(render_json(report)).verdict.status == verdict.status


def test_a_status_that_is_not_in_the_table_is_an_error() -> None:
    with pytest.raises(KeyError):
        traits("invented")  # type: ignore[arg-type]
    row = bare("case", "invented", "")
    for render in RENDERERS[:5]:
        with pytest.raises((AssertionError, KeyError, ValueError)):
            render(rich_report(results=(row,), failures=()))


def test_every_status_is_counted_in_json() -> None:
    assert {row["status"] for row in json.loads(render_json(EVERY))["results"]} == set(STATUSES)
