"""``baseline update`` that can't measure all: half a session replaces nothing, with a notice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.interference import SteppedInto

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
    assert re.search(r"not stored one: the time was over after [012] of", done.err)
    assert done.out == ""
    assert not list(project.folder.glob("baselines/*"))


def test_an_interrupt_before_anything_is_measured_is_exit_code_130(project: SteppedInto) -> None:
    project.step("interrupt-tree-1")
    done = project.perfci("baseline", "update").without_traceback()
    assert (done.code, done.err.splitlines()[-1]) == (130, "perfci: interrupted.")
