"""A benchmark that head no longer has is reported as removed, its file gone or not."""

from __future__ import annotations

import pytest

from perfci.model.words import words
from perfci.verdict.case_comparisons import LEFT_OUT
from tests.builders.project import Project

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


def test_a_removed_file_is_told_by_its_benchmarks(many: Project) -> None:
    (many.folder / FILE).unlink()
    many.write(
        "benchmarks/bench_new.py",
        "import perfci\n\n@perfci.benchmark\ndef kept():\n    return int\n",
    )
    assert removed(many) == {"renamed", "called-otherwise"}


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


LIMITED = """\
import perfci
import lib

GATED = ["latency_p50", "peak_host_memory"]

@perfci.benchmark
def work():
    return lambda: sum(range(1_000))

@perfci.benchmark(metrics=GATED)
def limited():
    return int

@perfci.benchmark(metrics=lib.METRICS)
def computed():
    return int
"""


def test_a_gating_metric_that_a_benchmark_leaves_out_on_head_is_told_and_counted(
    project: Project,
) -> None:
    where = "benchmarks/bench_work.py"
    project.commit("base", **{where: LIMITED, "lib.py": 'METRICS = ["latency_p50", "cold_start"]'})
    kept = {"peak_host_memory", "cold_start"}
    slower = LIMITED.replace("1_000", "3_000").replace(
        "benchmark\ndef work", 'benchmark(metrics=["peak_host_memory", "cold_start"])\ndef work'
    )
    project.write(where, slower)
    project.write("lib.py", 'METRICS = ["cold_start"]')
    report = project.report("compare", "HEAD", "--rounds", "2", "--budget", "20s")
    lost = {
        (row["case"], row["metric"])
        for row in report["results"]
        if row["status"] == "removed" and row["gate"] == "fail"
    }
    assert lost == {
        ("work", "latency_p50"),
        ("work", "latency_mean"),
        ("work", "host_memory_over_setup"),
        ("computed", "latency_p50"),
        ("computed", "latency_mean"),
        ("computed", "peak_host_memory"),
        ("computed", "host_memory_over_setup"),
    }
    assert {row["metric"] for row in report["results"] if row["case"] == "work"} >= kept
    told = [one for one in report["verdict"]["reasons"] if "work: latency_p50 (head's" in one]
    assert told == [f"warning: work: latency_p50 ({words(LEFT_OUT)})"]
