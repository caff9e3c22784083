"""Suites that are larger than the budget: some cases are decided, the others aren't begun."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from perfci.config.keys import MeasureSettings
from perfci.measure.budget import Budget, by_priority
from perfci.measure.checkout.git import git
from perfci.measure.checkout.trees import Differences, changed_lines
from perfci.measure.plan import SessionPlan
from perfci.measure.progress import CaseNeeds, TimeLeft, case_states
from perfci.measure.used_code import changed_lines_reached, imported_by
from perfci.model.case import Case
from perfci.verdict.policy import Policy
from tests.builders.project import QUICK, Project
from tests.builders.simulated import Simulated

SAME = ("compare", "HEAD", "HEAD", "--allow-same-commit", "--rounds", "5")
SLOWER = QUICK.replace("warmup = 0.01", "warmup = 0.05").replace("time = 0.01", "time = 0.02")
"""Rounds so long that the budgets below are too short for all cases."""
MANY = """\
import perfci

@perfci.benchmark(number=list(range({cases})))
def {name}(number):
    return lambda: sum(range(500))
"""


@pytest.fixture
def workers() -> Simulated:
    return Simulated(spread=0.0005)


@pytest.fixture
def project(tmp_path: Path, workers: Simulated) -> Project:
    project = Project(tmp_path / "project", workers)
    project.write("pyproject.toml", SLOWER)
    project.commit("base", **{"benchmarks/bench_many.py": MANY.format(cases=16, name="many")})
    return project


def statuses(report: dict[str, Any]) -> dict[str, str]:
    rows = (row for row in report["results"] if row["metric"] == "latency_p50")
    return {row["case"]: row["status"] for row in rows}


def test_most_of_a_short_budget_goes_to_cases_that_are_decided(
    project: Project, workers: Simulated
) -> None:
    report = project.report(*SAME, "-k", "many", "--budget", "9s")
    of_cases = list(statuses(report).values())
    assert set(of_cases) == {"unchanged", "not_measured"}
    decided = of_cases.count("unchanged")
    assert 5 < decided < 16
    assert sum(workers.started.values()) == 2 * 5 * decided, "rounds of cases that stay undecided"
    assert report["verdict"]["status"] == "inconclusive"
    (reason,) = report["verdict"]["reasons"]
    assert reason.startswith(f"{16 - decided} cases were not measured (the time budget")
    (note,) = (note for note in report["notes"] if "not measured" in note)
    assert note.startswith(f"{16 - decided} of 16 cases were not measured: all need about 1")


def test_cases_that_the_budget_leaves_out_need_more_than_the_budget() -> None:
    """Of 70 s, 31 s are left after the first case. The second needs 29 s: too close to be begun."""
    cases = tuple(Case(name, name, {}, "bench.py", 1, "") for name in ("first", "second"))
    states = case_states(cases, ["head"])
    first = states[0]
    first.rounds, first.took_s, first.wall_s = 5, [8.0, *[5.25] * 4], 29.0
    needs = CaseNeeds(MeasureSettings(rounds=5, budget=70.0), Policy())
    budget = Budget(needs, states)
    time = TimeLeft(left_s=31.0, start_s=0.0)
    assert budget.enough_for(states[1:], 0, time) == []
    (note,) = budget.notes(states, 0, time)
    assert "all need about 1 min 11 s, 1 min 10 s were given" in note


def test_cases_of_changed_code_are_measured_first(project: Project, workers: Simulated) -> None:
    few = MANY.format(cases=4, name="other").replace("import perfci", "import perfci, lib")
    project.commit("lib", **{"lib.py": "A = 1\n", "benchmarks/bench_other.py": few})
    project.commit("changed", **{"lib.py": "A = 2\n"})
    options = ("--all", "--rounds", "5", "--budget", "8s")
    report = project.report("compare", "HEAD~1", "HEAD", *options)
    measured = {case for case, status in statuses(report).items() if status != "not_measured"}
    assert {f"other[number={number}]" for number in range(4)} <= measured
    assert len(measured) < 20


@pytest.mark.parametrize(
    ("changed", "reached"),
    [
        ("bench.py", True),
        ("package/__init__.py", True),
        ("package/used.py", True),
        ("package/deeper.py", True),
        ("package/unused.py", False),
        ("README.md", False),
    ],
)
def test_a_benchmark_file_reaches_what_it_imports_directly_or_not(
    tmp_path: Path, changed: str, reached: bool
) -> None:
    sources = {
        "bench.py": "def case():\n    from package import used\n",
        "package/__init__.py": "",
        "package/used.py": "from . import deeper\nimport missing\n",
        "package/deeper.py": "import package.used\n",
        "package/unused.py": "",
        "README.md": "",
    }
    for name, text in sources.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert (tmp_path / changed in imported_by(tmp_path / "bench.py", (tmp_path,))) is reached


LIBRARY = """\
import other

LIMIT = 10

def encode(x):
    return inner(x)

def inner(x):
    return x

def alone(x):
    return x

def limited(x):
    return x[:LIMIT]

class Net:
    def __init__(self):
        self.depth = 1

    def forward(self, x):
        return x
"""
SUITE = """\
import perfci
from library import *
from library import encode as enc
import library

def helper(x):
    return enc(x)

@perfci.benchmark
def encoding():
    return lambda: helper(1)

@perfci.benchmark
def alone_only():
    return lambda: library.alone(1)

@perfci.benchmark
def limiting():
    from library import limited
    return lambda: limited(1)

@perfci.benchmark
def network():
    net = Net()
    return lambda: net(1)

@perfci.benchmark
def nothing():
    return lambda: sum(range(9))

class TimeNet:
    def setup(self):
        self.net = library.Net()

    def time_it(self):
        self.net(1)

def test_fixture(benchmark, encoded):
    benchmark(len, encoded)

def encoded():
    return enc(1)
"""
CASES = ("encoding", "alone_only", "limiting", "network", "nothing", "time_it", "test_fixture")


@pytest.mark.parametrize(
    ("old", "new", "reached"),
    [
        ("    return inner(x)", "    y = x\n    return inner(y)",
         {"encoding": 2, "test_fixture": 2}),
        ("def inner(x):\n    return x", "def inner(x):\n    return +x",
         {"encoding": 1, "test_fixture": 1}),
        ("def alone(x):\n    return x", "def alone(x):\n    return -x", {"alone_only": 1}),
        ("LIMIT = 10", "LIMIT = 99", {"limiting": 1}),
        ("depth = 1", "depth = 2", {"network": 1, "time_it": 1}),
        ("self, x):\n        return x", "self, x):\n        return x + 1",
         {"network": 1, "time_it": 1}),
        ("import other", "import others", {}),
    ],
)  # fmt: skip
def test_cases_whose_calls_lead_to_changed_lines_go_before_those_that_only_import_them(
    tmp_path: Path, old: str, new: str, reached: dict[str, int]
) -> None:
    plan = two_trees(tmp_path, LIBRARY, LIBRARY.replace(old, new))
    lines = SUITE.splitlines()
    cases = [
        Case(name, name, {}, "benchmarks/bench.py", 1 + next(
            number for number, line in enumerate(lines) if f"def {name}" in line
        ), "")
        for name in CASES
    ]  # fmt: skip
    unrelated = Case("unrelated", "unrelated", {}, "benchmarks/bench_other.py", 3, "")
    counts = changed_lines_reached(plan, [*cases, unrelated])
    assert {case: count for case, count in counts.items() if count} == reached
    assert set(counts) == set(CASES)
    order = by_priority(case_states((unrelated, *cases), ["head"]), counts, Random(1))
    assert {state.case.id for state in order[: len(reached)]} == set(reached)
    assert order[-1].case.id == "unrelated"


def two_trees(folder: Path, base: str, head: str) -> SessionPlan:
    git(folder, "init", "-q")
    trees = []
    for name, library in (("base", base), ("head", head)):
        benchmarks = folder / name / "benchmarks"
        benchmarks.mkdir(parents=True)
        (folder / name / "library.py").write_text(library)
        (benchmarks / "bench.py").write_text(SUITE)
        (benchmarks / "bench_other.py").write_text("import perfci\n")
        git(folder, "--work-tree", name, "add", "-A")
        trees.append(git(folder, "write-tree"))
    root = folder / "head"
    plan: Any = SimpleNamespace(
        head=SimpleNamespace(name="head", root=root),
        config=SimpleNamespace(benchmarks="benchmarks"),
        differences=Differences(
            sources=("library.py",), lines=changed_lines(folder, (trees[0], trees[1]))
        ),
        python_path_of=lambda _side: (str(root),),
    )
    return plan
