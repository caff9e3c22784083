"""Base with head's benchmark files, in whole sessions of simulated workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.project import Project, rows
from tests.builders.simulated import Simulated

BENCH = "benchmarks/bench_a.py"
READING = """\
from pathlib import Path
import perfci

HERE = Path(__file__).parent

@perfci.benchmark
def case():
    assert (HERE / "NAME").read_text() == Path("expected").read_text()
    return lambda: sum(range(500))
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", Simulated())


def compare(project: Project, *more: str) -> str:
    """Compare ``case``, and return the report's notes."""
    report = project.report("compare", *more, "--rounds", "5", "--all", "-k", "case")
    assert not report["failures"]
    assert rows(report, "case")["latency_p50"]["base"]["workers"] == 5
    return "\n".join(report["notes"])


def test_data_of_the_benchmarks_is_heads_on_both_sides(project: Project) -> None:
    text = READING.replace("NAME", "data")
    project.commit("base", **{BENCH: text, "benchmarks/data": "1", "expected": "2"})
    project.commit("head", **{"benchmarks/data": "2"})
    notes = compare(project, "HEAD~", "HEAD")
    assert "Benchmark files changed: benchmarks/data. Both sides ran head's." in notes
    project.commit("library", **{"other.py": ""})
    assert "Benchmark files changed" not in compare(project, "HEAD~", "HEAD")


def test_both_sides_have_the_benchmark_files_of_another_commit(project: Project) -> None:
    text = READING.replace("NAME", "data")
    project.commit("old", **{"expected": "3", BENCH: "import perfci\n"})
    project.commit("new", other="")
    project.commit("newest", **{BENCH: text, "benchmarks/data": "3"})
    notes = compare(project, "HEAD~2", "HEAD~", "--benchmarks-of", "HEAD")
    assert f"Benchmark files changed: {BENCH}. Both sides ran HEAD's." in notes


def test_a_working_tree_is_left_as_it_is(project: Project) -> None:
    text = READING.replace("NAME", "data")
    project.commit("base", **{BENCH: text, "benchmarks/data": "1", "expected": "2"})
    project.write("benchmarks/data", "2")
    project.write("benchmarks/added", "")
    before = project.git("status", "--porcelain")
    compare(project, "HEAD")
    compare(project, ".", "HEAD~0", "--benchmarks-of", ".")
    assert project.git("status", "--porcelain") == before
