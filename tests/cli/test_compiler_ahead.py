"""torch's compiler is imported once for both sides' compiled cases, where that changes nothing."""

from __future__ import annotations

import pytest

from tests.builders.project import Project, rows

pytestmark = [pytest.mark.processes, pytest.mark.torch]

SAYS_WHETHER_IT_WAS_THERE = """\
import os, sys
import perfci, torch

@perfci.benchmark(mode=MODES)
def one(mode):
    was_there = perfci.metric("early", lambda: float(there), exact=True)
    there = "torch._dynamo" in sys.modules
    if "LATE" in TEXT:
        os.environ["TORCH_LATE"] = "1"
    if mode == "default":
        return (lambda: sum(range(300))), was_there
    return perfci.inference(torch.nn.Linear(2, 2), torch.ones(1, 2), mode=mode), was_there
"""


def measured(project: Project, *modes: str, text: str = "") -> dict:
    source = SAYS_WHETHER_IT_WAS_THERE.replace("MODES", repr(list(modes)))
    project.write("benchmarks/bench_one.py", source.replace("TEXT", repr(text)))
    project.commit("benchmarks")
    report = project.report("run", "--rounds", "2")
    assert report["failures"] == []
    assert "by itself" not in str(report["notes"]), "there was no ancestor"
    return report


def was_there(report: dict, mode: str) -> float:
    return rows(report, f"one[mode={mode}]")["early"]["head"]["center"]


def test_it_is_there_before_set_up_of_what_compiles_and_of_nothing_else(project: Project) -> None:
    report = measured(project, "eager", "backend:eager")
    assert was_there(report, "eager") == 0.0
    assert was_there(report, "backend:eager") == 1.0
    cold = rows(report, "one[mode=backend:eager]")["cold_start"]["head"]["center"]
    imports = rows(report, "one[mode=backend:eager]")["import_time"]["head"]["center"]
    assert cold > imports + 0.2, "cold start lacks the compiler's import"


def test_set_up_that_changes_the_environment_finds_none_that_has_read_it(project: Project) -> None:
    report = measured(project, "backend:eager", text="LATE")
    assert was_there(report, "backend:eager") == 0.0


def test_a_mode_that_compiles_nothing_pays_for_no_compiler(project: Project) -> None:
    assert was_there(measured(project, "default"), "default") == 0.0


COMPILES_WITHIN = """\
import sys
import perfci, torch

@perfci.benchmark
def one():
    there = float("torch._dynamo" in sys.modules)
    model = torch.compile(torch.nn.Linear(2, 2), backend="eager")
    if IN_SET_UP:
        model(torch.ones(1, 2))
    return (lambda: model(torch.ones(1, 2))), perfci.metric("early", lambda: there)
"""


@pytest.mark.parametrize("in_set_up", ["False", "True"])
def test_a_case_that_was_seen_to_compile_finds_it_in_later_rounds(
    project: Project, in_set_up: str
) -> None:
    project.write("benchmarks/bench_one.py", COMPILES_WITHIN.replace("IN_SET_UP", in_set_up))
    project.commit("benchmarks")
    report = project.report("run", "--rounds", "4")
    assert 0.0 < rows(report, "one")["early"]["head"]["center"] < 1.0
    assert report["failures"] == []
