"""GitLab's code quality report: each finding at a line of the repository, with a steady name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from perfci.model.report import Definition, Explanation
from perfci.report.exporters import formats
from perfci.report.exporters.codequality import render as render_codequality
from tests.forges.github.conftest import PASSING, report_of
from tests.report.examples import EAGER, TUNED, hostile_report, rich_report
from tests.report.hostile import NAMES


def findings(**changed: Any) -> list[dict[str, Any]]:
    return json.loads(render_codequality(report_of(**changed)))


def slower(ratio: float, line: int) -> dict[str, Any]:
    """Return what makes the report one in which EAGER's median regressed, and nothing else."""
    row = replace(report_of().results[0], case=EAGER, metric="latency_p50", status="regressed")
    row = replace(row, ratio=ratio, gate="fail", unit="s", difference=None)
    definition = Definition(EAGER.partition("[")[0], "benchmarks/bench_a.py", line)
    return {
        "results": (row,),
        "explanations": (),
        "failures": (),
        "definitions": (definition,),
    }


def test_a_regression_stands_where_its_benchmark_is_written() -> None:
    (one,) = findings(**slower(1.125, 7))
    assert one.pop("fingerprint")
    assert one == {
        "description": f"perfci: latency_p50 regressed in {EAGER}: +12.5 %",
        "check_name": "perfci: latency_p50 regressed",
        "severity": "major",
        "location": {"path": "benchmarks/bench_a.py", "lines": {"begin": 7}},
    }


def test_the_same_finding_of_another_measurement_and_line_has_the_same_fingerprint() -> None:
    (one,), (other,) = findings(**slower(1.125, 7)), findings(**slower(1.25, 9))
    assert one != other
    assert one["fingerprint"] == other["fingerprint"]


def test_findings_of_one_report_have_different_fingerprints() -> None:
    breaks = tuple(
        Explanation(TUNED, "graph_breaks", "graph_break", text, file, line)
        for file, line, text in (
            ("lib/a.py", 3, "call to print()"),
            ("lib/a.py", 9, "call to print()"),
            ("lib/a.py", 3, "data-dependent branch"),
            ("lib/b.py", 3, "call to print()"),
        )
    )
    every = findings(explanations=breaks, failures=())
    assert len({one["fingerprint"] for one in every}) == len(every) == 4
    assert {one["severity"] for one in every} == {"major"}


def test_where_nothing_moved_there_is_no_finding() -> None:
    assert findings(**PASSING) == []


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_it_is_json_without_a_runners_commands_whatever_the_names(name: str) -> None:
    text = render_codequality(hostile_report(name))
    assert "##[" not in text
    for one in json.loads(text):
        assert set(one) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert not one["location"]["path"].startswith(("/", ".."))


def test_it_is_one_of_the_formats() -> None:
    found, _ = formats()
    assert json.loads(found["codequality"].text(rich_report()))
