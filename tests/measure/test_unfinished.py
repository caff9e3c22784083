"""What one side passed in a moment and the other never ends is evidence, though the budget ends."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from perfci.measure.checkout.trees import Differences
from perfci.measure.plan import SessionPlan
from perfci.measure.progress import case_states
from perfci.measure.used_code import UsedCode
from perfci.model.case import Case, Failure
from perfci.model.worker import WorkOrder
from tests.builders.project import Project
from tests.builders.simulated import Simulated

BENCHMARKS = """\
import perfci
import lib

@perfci.benchmark
def doubted():
    lib.prepare()
    return lib.work

@perfci.benchmark
def quick_0():
    return lambda: sum(range(500))

@perfci.benchmark
def quick_1():
    return lambda: sum(range(500))
"""
LIBRARY = """\
import time
def prepare(): {prepare}
def work(): {work}
"""
CASE = Case("doubted", "doubted", {}, "bench_doubted.py", 1, "0")
HANGS = "time.sleep(1e6)"
CONFIGURATION = """\
[tool.perfci]
rounds = 5
max_rounds = 5
round_time = 0.01
warmup = 0.01
budget = "12s"
why = false
"""


def project_with(
    tmp_path: Path, workers: Simulated, base: dict[str, str], head: dict[str, str]
) -> Project:
    project = Project(tmp_path / "project", workers)
    project.write("pyproject.toml", CONFIGURATION)
    project.write("benchmarks/bench_doubted.py", BENCHMARKS)
    well = {"prepare": "pass", "work": "time.sleep(0.003)"}
    project.commit("base", **{"lib.py": LIBRARY.format(**well | base)})
    project.commit("head", **{"lib.py": LIBRARY.format(**well | head) + "# changed\n"})
    return project


@pytest.mark.parametrize("side", ["base", "head"])
@pytest.mark.parametrize("where", ["prepare", "work"])
@pytest.mark.parametrize("seed", range(3))
def test_a_side_that_hangs_where_the_other_is_quick_has_failed(
    tmp_path: Path, side: str, where: str, seed: int
) -> None:
    """Whichever case is drawn first, and whichever side starts first."""
    hanging: dict[str, dict[str, str]] = {"base": {}, "head": {}}
    hanging[side] = {where: HANGS}
    workers = Simulated()
    project = project_with(tmp_path, workers, **hanging)
    began = workers.time
    report = project.report("compare", "HEAD~1", "HEAD", "--set", f"seed={seed}")
    assert report["verdict"]["status"] == ("error" if side == "head" else "inconclusive")
    (failure,) = report["failures"]
    assert (failure["case"], failure["side"], failure["kind"]) == ("doubted", side, "unfinished")
    other = {"base": "head", "head": "base"}[side]
    assert failure["message"].startswith("not ended after 1")
    assert f"; {other}: " in failure["message"]
    assert workers.time - began < 12 + 21


@pytest.mark.parametrize("side", ["base", "head"])
@pytest.mark.parametrize("seconds", [1.0, 3.0])
def test_a_side_that_is_a_thousand_times_slower_does_not_pass(
    tmp_path: Path, side: str, seconds: float
) -> None:
    def latency(order: WorkOrder, _: int) -> float:
        return seconds if (order.case, order.side) == ("doubted", side) else seconds / 1000

    workers = Simulated(latency=latency)
    project = project_with(tmp_path, workers, {}, {})
    report = project.report("compare", "HEAD~1", "HEAD")
    failed = [(each["case"], each["side"]) for each in report["failures"]]
    measured = [row for row in report["results"] if row["case"] == "doubted" and row["ratio"]]
    assert failed == [("doubted", side)] or measured


@pytest.mark.parametrize("seconds", [15.0, 1e6])
def test_sides_that_are_equally_slow_have_not_failed(tmp_path: Path, seconds: float) -> None:
    workers = Simulated(latency=lambda order, _: seconds if order.case == "doubted" else 0.01)
    project = project_with(tmp_path, workers, {}, {})
    report = project.report("compare", "HEAD~1", "HEAD")
    assert report["failures"] == []
    assert report["verdict"]["status"] == "inconclusive"


def test_the_budget_is_not_to_blame_where_every_other_case_was_decided(tmp_path: Path) -> None:
    project = project_with(tmp_path, Simulated(), {}, {"work": HANGS})
    report = project.report("compare", "HEAD~1", "HEAD", "-k", "doubted", code=3)
    assert not any("budget" in note for note in report["notes"])


@pytest.mark.parametrize(("failing", "said"), [([], True), (["base"], False), (["head"], False)])
def test_a_case_that_fails_on_one_side_ran_what_differs(failing: list[str], said: bool) -> None:
    differences = Differences(sources=("lib.py",), python_alone=True)
    plan = cast("SessionPlan", SimpleNamespace(sides=(), differences=differences))
    (state,) = case_states((CASE,), ("base", "head"))
    state.rounds = 1
    state.failures += [Failure(state.case.id, side, "measure", "exit", "") for side in failing]
    assert bool(UsedCode(plan).unexercised([state])) is said
