"""``baseline update`` that can't measure all: half a session replaces nothing, with a notice."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfci.commands.revisions import cut_short, unbegun_text
from perfci.model.case import Failure
from perfci.model.measuring import MeasureSettings
from perfci.model.run import CaseRun
from tests.cli.interference import SteppedInto
from tests.verdict.workers import case, side

pytestmark = pytest.mark.processes


@pytest.fixture
def project(tmp_path: Path) -> SteppedInto:
    project = SteppedInto(tmp_path / "project")
    project.commit("first")
    return project


def test_a_case_that_the_budget_cut_short_is_not_stored(project: SteppedInto) -> None:
    project.step("hang-one-3")
    done = project.perfci("baseline", "update", "--budget", "4s").without_traceback()
    assert done.code == 3, done.text
    assert "--budget" in done.err
    assert re.search(r"not stored one(, two)?: the time was over (after [12] of|before)", done.err)
    assert done.out == ""
    assert not list(project.folder.glob("baselines/*"))


def test_a_compiled_case_that_was_cut_short_says_what_it_needs_beyond_rounds() -> None:
    settings = MeasureSettings(rounds=2, compile_rounds=3)
    workers = side("head", "latency_p50", [1.0] * 3)
    assert cut_short(CaseRun(case(compiled=True), workers), settings) == (
        "the time was over after 3 of 6 workers (`compile_rounds` = 3, and 3 with a warm cache)"
    )
    assert cut_short(CaseRun(case(), workers[:1]), settings) == (
        "the time was over after 1 of 2 workers"
    )


def test_cases_that_were_not_begun_are_not_stored_in_one_line() -> None:
    begun, failed = side("head", "latency_p50", [1.0]), (Failure("f", "head", "setup", "E", "e"),)
    cases = [CaseRun(replace(case(), id=f"case{number}"), ()) for number in range(40)]
    cases += [CaseRun(replace(case(), id="begun"), begun), CaseRun(case(), (), failed)]
    (line,) = unbegun_text(SimpleNamespace(cases=cases))  # type: ignore[arg-type]
    assert line.startswith("not stored case0, case1, case2 and 37 more: the time was over before")
    assert unbegun_text(SimpleNamespace(cases=cases[40:])) == []  # type: ignore[arg-type]


def test_an_interrupt_before_anything_is_measured_is_exit_code_130(project: SteppedInto) -> None:
    project.step("interrupt-tree-1")
    done = project.perfci("baseline", "update").without_traceback()
    assert (done.code, done.err.splitlines()[-1]) == (130, "perfci: interrupted.")


def test_an_interrupt_between_sessions_says_that_the_earlier_ones_are_stored(
    project: SteppedInto,
) -> None:
    project.step("interrupt-tree-2")
    done = project.perfci(
        "baseline", "update", "-k", "one", "--rounds", "2", "--sessions", "3"
    ).without_traceback()
    assert done.code == 3, done.text
    assert "stored baselines" in done.out
    assert "Earlier sessions were stored." in done.err
    assert len(json.loads(project.baseline("one").read_text())["sessions"]) == 1
    assert project.count("trees") == 2
