"""A benchmark that head no longer has is said to be removed, its file gone or not."""

from __future__ import annotations

import pytest

from tests.project import Project

FILE = "benchmarks/bench_many.py"
MANY = """\
import perfci
from perfci import benchmark as measured

@perfci.benchmark
def kept():
    return int

@perfci.benchmark(size=[1, 2])
def renamed(size):
    return int

@measured(name="called-otherwise")
def dropped():
    return int
"""
LATER = """\
import perfci
from perfci import benchmark as measured

@perfci.benchmark
def kept():
    return int

@perfci.benchmark(size=[1, 2])
def renamed_since(size):
    return int

if perfci is None:
    @perfci.benchmark
    def elsewhere():
        return int
"""


@pytest.fixture
def many(project: Project) -> Project:
    project.commit("base", **{FILE: MANY})
    return project


def removed(project: Project, *arguments: str) -> set[str]:
    report = project.report("compare", "HEAD", *arguments)
    return {row["case"] for row in report["results"] if row["status"] == "removed"}


def test_a_renamed_or_dropped_benchmark_of_a_file_that_stayed_is_removed(many: Project) -> None:
    many.write(FILE, LATER)
    assert removed(many) == {"renamed", "called-otherwise"}


def test_a_selection_names_the_removed_that_it_means(many: Project) -> None:
    many.write(FILE, LATER)
    assert removed(many, "-k", "kept") == set()
    assert removed(many, "-k", "kept or called") == {"called-otherwise"}


def test_a_benchmark_that_moved_to_another_file_is_not_removed(many: Project) -> None:
    many.git("mv", FILE, "benchmarks/bench_moved.py")
    assert removed(many, "-k", "kept") == set()


def test_a_removed_file_is_told_by_its_benchmarks(many: Project) -> None:
    (many.folder / FILE).unlink()
    many.write(
        "benchmarks/bench_new.py",
        "import perfci\n\n@perfci.benchmark\ndef kept():\n    return int\n",
    )
    assert removed(many) == {"renamed", "called-otherwise"}


def test_a_removed_file_that_tells_no_names_is_told_by_its_path(project: Project) -> None:
    project.counting(100)
    project.commit("base", **{FILE: "syntax error("})
    (project.folder / FILE).unlink()
    assert removed(project) == {FILE}


def test_a_file_that_head_broke_is_not_said_to_be_removed(many: Project) -> None:
    many.counting(100)
    many.write(FILE, "syntax error(")
    assert removed(many) == set()


POINTS = """\
import lib
import perfci

@perfci.benchmark(mode=lib.MODES)
def work(mode):
    return int
"""


def test_a_point_of_an_axis_that_one_side_alone_has_is_new_or_removed(project: Project) -> None:
    project.commit("base", **{"benchmarks/bench_work.py": POINTS, "lib.py": 'MODES = ["a", "b"]'})
    project.git("checkout", "--quiet", "-b", "feature")
    project.commit("head", **{"lib.py": 'MODES = ["a", "c"]'})
    report = project.report("compare", "main", "feature")
    statuses = {row["case"]: row["status"] for row in report["results"] if not row["head"]}
    assert statuses == {"work[mode=b]": "removed", "work[mode=c]": "new"}
    one = project.report("compare", "main", "feature", "-k", "mode=c")
    assert {row["case"]: row["status"] for row in one["results"]} == {"work[mode=c]": "new"}
    assert one["verdict"]["status"] == "inconclusive"
