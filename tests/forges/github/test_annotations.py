"""The lines of code that a report names: annotations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.finding import Explanation
from perfci.forges.github import Annotation
from perfci.forges.posting import MOST_REMARKS, annotations_of
from perfci.model.case import Failure
from perfci.model.report import Definition
from tests.forges.github.conftest import report_of
from tests.report.examples import EAGER, TUNED


def explained(
    file: str, line: int = 41, text: str = "call to print()", case: str = TUNED
) -> tuple[Annotation, ...]:
    one = Explanation(case, "graph_breaks", "graph_break", text, file, line)
    return annotations_of([report_of(explanations=(one,), failures=())])


def failed(message: str, side: str = "head") -> tuple[Annotation, ...]:
    failure = Failure("generate", side, "setup", "RuntimeError", message)
    return annotations_of([report_of(explanations=(), failures=(failure,))])


def place_of(one: Annotation) -> tuple[str, int, str]:
    return one.path, one.start_line, one.annotation_level


def test_a_graph_break_is_said_on_its_line() -> None:
    (one,) = explained("lib/encoder.py")
    assert place_of(one) == ("lib/encoder.py", 41, "failure")
    assert one.title == "perfci: graph break"
    assert one.message == f"call to print()\nin {TUNED}"


def test_a_failure_whose_message_names_a_line_is_said_there() -> None:
    (one,) = failed("benchmarks/bench_a.py:12: shapes (1x2) and (3x4)")
    assert place_of(one) == ("benchmarks/bench_a.py", 12, "failure")
    assert one.message == "shapes (1x2) and (3x4)\nin generate"


def test_a_regression_is_said_where_its_benchmark_is_written() -> None:
    slower = replace(report_of().results[0], case=EAGER, metric="latency_p50", status="regressed")
    slower = replace(slower, ratio=1.125, gate="fail", unit="s", difference=None)
    definition = Definition(EAGER.partition("[")[0], "benchmarks/bench_a.py", 7)
    report = report_of(results=(slower,), explanations=(), failures=(), definitions=(definition,))
    (one,) = annotations_of([report])
    assert place_of(one) == ("benchmarks/bench_a.py", 7, "failure")
    assert one.title == "perfci: latency_p50 regressed"
    assert one.message == f"perfci: latency_p50 regressed\nin {EAGER}: +12.5 %"


def test_a_regression_whose_cause_names_a_line_is_said_there_alone() -> None:
    worse = replace(report_of().results[0], case=TUNED, metric="graph_breaks", status="regressed")
    cause = Explanation(TUNED, "graph_breaks", "graph_break", "print()", "lib/encoder.py", 41)
    definition = Definition(TUNED.partition("[")[0], "benchmarks/bench_a.py", 7)
    report = report_of(
        results=(worse,), explanations=(cause,), failures=(), definitions=(definition,)
    )
    assert [one.path for one in annotations_of([report])] == ["lib/encoder.py"]


def test_a_failure_on_base_names_no_line_of_the_pull_request() -> None:
    assert failed("benchmarks/bench_a.py:12: shapes", side="base") == ()


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../outside.py",
        "lib/../../outside.py",
        "lib//a.py",
        "~/a.py",
        "lib\\a.py",
        "lib/a\u202eyp.py",
        "lib/a\nb.py",
        "a" * 400,
    ],
)
def test_a_path_that_is_not_in_the_repository_names_no_line(path: str) -> None:
    assert explained(path) == ()


def test_one_line_that_slows_many_cases_is_said_once_with_their_names() -> None:
    every = tuple(
        Explanation(f"case{number}", "recompiles", "recompile", "shape", "lib/a.py", 3)
        for number in range(8)
    )
    (one,) = annotations_of([report_of(explanations=every, failures=())])
    assert one.message == "shape\nin case0, case1, case2, case3, case4 and 3 more"


def test_the_gravest_come_first_and_the_rest_is_left_out() -> None:
    few = tuple(
        Explanation("new one", "recompiles", "recompile", "shape", "lib/a.py", line)
        for line in range(1, MOST_REMARKS + 50)
    )
    grave = Explanation(EAGER, "latency_p50", "graph_break", "print", "lib/z.py", 9)
    found = annotations_of([report_of(explanations=(*few, grave), failures=())])
    assert len(found) == MOST_REMARKS
    assert found[0].path == "lib/z.py"
    assert {one.annotation_level for one in found[1:]} == {"notice"}
