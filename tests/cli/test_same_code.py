"""A case that is the same code on both sides takes one round; what could differ takes all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.project import Project, rows

BENCHMARK = """\
from pathlib import Path
import perfci
from lib import work

@perfci.benchmark
def counting():
    return work

@perfci.benchmark
def reading():
    text = Path("notes.md").read_text()
    return lambda: len(text)
"""


@pytest.fixture
def settled(project: Project) -> Project:
    for path, text in {
        "benchmarks/bench_one.py": BENCHMARK,
        "lib.py": "def work():\n    return sum(range(1000))\n",
        "unused.py": "x = 1\n",
        "notes.md": "one\n",
        "weights.bin": "1",
    }.items():
        project.write(path, text)
    project.commit("base")
    return project


def methods(project: Project, *arguments: str) -> dict[str, str]:
    report = project.report("compare", "HEAD~1", "HEAD", *arguments)
    of = {case: rows(report, case)["latency_p50"] for case in ("counting", "reading")}
    _check(report, of)
    return {case: row["method"] for case, row in of.items()}


def _check(report: dict[str, Any], of: dict[str, dict[str, Any]]) -> None:
    for case, row in of.items():
        same = row["method"] == "same_code"
        assert row["head"]["workers"] == 1 if same else row["head"]["workers"] >= 5
        assert not same or case in report["same_code"]
        assert not same or row["status"] == "unchanged"


def test_what_no_case_uses_costs_one_round(settled: Project) -> None:
    unused = {"unused.py": "x = 2\n", "README.md": "new\n", "weights.bin": "2"}
    settled.commit("other", **unused)
    assert methods(settled) == {"counting": "same_code", "reading": "same_code"}


def test_prose_that_a_case_reads_is_its_code(settled: Project) -> None:
    settled.commit("notes", **{"notes.md": "one, two\n"})
    assert methods(settled) == {"counting": "same_code", "reading": "paired_t"}


def test_what_is_imported_is_measured(settled: Project) -> None:
    settled.commit("change", **{"lib.py": "def work():\n    return sum(range(1001))\n"})
    assert "same_code" not in methods(settled).values()


def test_all_measures_everything(settled: Project) -> None:
    settled.commit("other", **{"unused.py": "x = 2\n"})
    assert set(methods(settled, "--all").values()) == {"paired_t"}


MANY = """\
from pathlib import Path
import perfci
from lib import work

@perfci.benchmark(number=[1, 2, 3, 4, 5])
def counting(number):
    return work
"""
READING = """\
    if number == 5:
        text = Path("notes.md").read_text()
"""


@pytest.mark.processes
def test_many_cases_that_ran_the_same_code_together_need_no_round(settled: Project) -> None:
    settled.commit("many", **{"benchmarks/bench_one.py": MANY})
    settled.commit("prose", **{"notes.md": "one, two\n"})
    report = settled.report("compare", "HEAD~1", "HEAD")
    assert report["verdict"]["status"] == "pass"
    assert report["timing"]["rounds"] == 0
    assert len(report["same_code"]) == 5
    assert {(row["method"], row["status"]) for row in report["results"]} == {
        ("same_code", "unchanged")
    }
    assert {row["case"] for row in report["results"]} == set(report["same_code"])


@pytest.mark.processes
@pytest.mark.parametrize("also", [READING, "    if number == 5:\n        raise ValueError\n"])
def test_one_of_many_that_differs_or_fails_has_each_measured_by_itself(
    settled: Project, also: str
) -> None:
    many = MANY.replace("    return work", f"{also}    return work")
    settled.commit("many", **{"benchmarks/bench_one.py": many})
    settled.commit("prose", **{"notes.md": "one, two\n"})
    report = settled.report("compare", "HEAD~1", "HEAD")
    alike = {f"counting[number={number}]" for number in range(1, 5)}
    assert set(report["same_code"]) == alike
    assert all(rows(report, case)["latency_p50"]["head"]["workers"] == 1 for case in alike)
