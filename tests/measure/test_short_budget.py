"""Suites that are larger than the budget: some cases are decided, the others aren't begun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfci.measure.budget import Budget
from perfci.measure.progress import CaseNeeds, case_states
from perfci.measure.used_code import reaches
from perfci.model.case import Case
from perfci.model.measuring import MeasureSettings
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
    first.rounds, first.first_round_s, first.longest_round_s = 5, 8.0, 8.0
    first.took_s, first.wall_s = [8.0, *[5.25] * 4], 29.0
    needs = CaseNeeds(MeasureSettings(rounds=5, budget=70.0), Policy())
    budget = Budget(needs, states)
    times = {"start_s": 0.0, "left_s": 31.0}
    assert budget.enough_for(states[1:], 0, **times) == []
    (note,) = budget.notes(states, 0, **times)
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
    assert reaches(tmp_path / "bench.py", {tmp_path / changed}, (tmp_path,)) is reached
