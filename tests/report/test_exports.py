"""JUnit XML and the pandas frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from perfci.report.exporters.junit import render as render_junit
from perfci.report.templates import template_folder
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from tests.report.examples import (
    EAGER,
    FORMS,
    alone_report,
    hostile_report,
    rendered,
    rich_report,
    row,
)  # fmt: skip
from tests.report.hostile import NAMES


def test_junit_is_as_it_was(golden: Callable[[str, str], None]) -> None:
    golden("junit.xml", render_junit(rich_report()))


@pytest.mark.parametrize("name", [*NAMES, "\ufffe", "]]>", "a\x0bb"], ids=ascii)
def test_junit_is_well_formed_whatever_the_names(name: str) -> None:
    suite = ET.fromstring(render_junit(hostile_report(name)).encode())
    assert suite.get("tests") == str(len(suite.findall("testcase")))


def test_junit_counts_what_it_holds() -> None:
    suite = ET.fromstring(render_junit(rich_report()).encode())
    assert (suite.get("failures"), suite.get("errors")) == ("2", "1")
    skipped = [test.get("classname") for test in suite.findall("testcase[skipped]")]
    assert "sampler" in skipped
    assert "encoder[batch=64,mode=eager]" in skipped
    names = {test.get("name") for test in suite.findall("testcase")}
    assert "latency_p95" not in names  # warns only: nothing for a gate


def test_a_run_alone_passes_in_junit() -> None:
    suite = ET.fromstring(render_junit(alone_report()).encode())
    assert suite.get("failures") == suite.get("errors") == "0"
    assert suite.get("skipped") == "1"


def test_the_frame_has_a_row_for_each_comparison() -> None:
    report = rich_report()
    frame = report.to_frame()
    assert len(frame) == len(report.results)
    regressed = frame[frame["status"] == "regressed"]
    assert set(regressed["metric"]) >= {"latency_p50", "graph_breaks"}
    assert frame["base_center"].iloc[0] == report.results[0].base.center


@pytest.mark.parametrize("form", FORMS)
def test_every_format_renders_every_report(form: str) -> None:
    for report in (rich_report(), alone_report(), hostile_report("x")):
        assert rendered(report, form).endswith("\n")


@pytest.mark.parametrize("form", ["terminal", "markdown", "junit"])
def test_where_head_has_no_graph_to_count_breaks_in_that_is_the_change(form: str) -> None:
    lost = replace(row(EAGER, "graph_breaks", 0, 0, "regressed"), head=None, difference=None)
    report = replace(rich_report(), results=(lost,), verdict=decide((lost,), (), Policy()))
    assert "not compiled" in rendered(report, form).replace("\N{NO-BREAK SPACE}", " ")


def test_the_templates_are_found() -> None:
    assert (template_folder() / "comment.md.j2").is_file()
