"""torch's compiler is imported once for both sides' compiled cases, where that changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.project import Project, rows

pytestmark = [pytest.mark.processes, pytest.mark.torch]

SAYS_WHETHER_IT_WAS_THERE = """\
import sys
import perfci, torch

def linear(mode):
    return perfci.inference(torch.nn.Linear(2, 2), torch.ones(1, 2), mode=mode)

@perfci.benchmark(mode=["eager", "backend:eager"])
def declared(mode):
    was_there = perfci.metric("early", lambda: float(there), exact=True)
    there = "torch._dynamo" in sys.modules
    return linear(mode), was_there

def compiling(in_set_up):
    there = float("torch._dynamo" in sys.modules)
    model = torch.compile(torch.nn.Linear(2, 2), backend="eager")
    if in_set_up:
        model(torch.ones(1, 2))
    return (lambda: model(torch.ones(1, 2))), perfci.metric("early", lambda: there)

@perfci.benchmark
def compiles_when_called():
    return compiling(False)

@perfci.benchmark
def compiles_in_set_up():
    return compiling(True)
"""
COMPILES_NOTHING = """\
import sys
import perfci, torch

@perfci.benchmark(mode=["backend:eager"])
def compiles_nothing(mode):
    was_there = perfci.metric("early", lambda: float(there), exact=True)
    there = "torch._dynamo" in sys.modules
    return (lambda: sum(range(300))), was_there
"""
CHANGES_THE_ENVIRONMENT = """\
import os, sys
import perfci, torch

@perfci.benchmark(mode=["backend:eager"])
def late(mode):
    was_there = perfci.metric("early", lambda: float(there), exact=True)
    there = "torch._dynamo" in sys.modules
    os.environ["TORCH_LATE"] = "1"
    return perfci.inference(torch.nn.Linear(2, 2), torch.ones(1, 2), mode=mode), was_there
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of one session with all of them: the second round is of what the first learned."""
    project = Project(tmp_path_factory.mktemp("compiler") / "project")
    project.write("benchmarks/bench_one.py", SAYS_WHETHER_IT_WAS_THERE)
    project.write("benchmarks/bench_nothing.py", COMPILES_NOTHING)
    project.write("benchmarks/bench_late.py", CHANGES_THE_ENVIRONMENT)
    project.commit("benchmarks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("perfci.measure.progress.least_rounds", lambda rounds, *_, **__: rounds)
        report = project.report("run", "--rounds", "2", "--budget", "280s")
    assert report["failures"] == []
    assert "by itself" not in str(report["notes"]), "there was no fork server"
    return report


def was_there(report: dict[str, Any], case: str) -> float:
    """Return the share of both rounds in which it was there before the set-up."""
    center: float = rows(report, case)["early"]["head"]["center"]
    return center


def test_it_is_there_before_set_up_of_what_compiles_and_of_nothing_else(
    report: dict[str, Any],
) -> None:
    assert was_there(report, "declared[mode=eager]") == 0.0
    assert was_there(report, "declared[mode=backend:eager]") == 1.0
    cold = rows(report, "declared[mode=backend:eager]")["cold_start"]["head"]["center"]
    imports = rows(report, "declared[mode=backend:eager]")["import_time"]["head"]["center"]
    assert cold > imports + 0.2, "cold start lacks the compiler's import"


def test_set_up_that_changes_the_environment_finds_none_that_has_read_it(
    report: dict[str, Any],
) -> None:
    assert was_there(report, "late[mode=backend:eager]") == 0.0


@pytest.mark.parametrize("case", ["compiles_when_called", "compiles_in_set_up"])
def test_a_case_that_was_seen_to_compile_finds_it_in_later_rounds(
    report: dict[str, Any], case: str
) -> None:
    assert was_there(report, case) == 0.5
