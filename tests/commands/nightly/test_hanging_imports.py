"""A commit whose import hangs costs a night its time-out, and no other commit its place."""

from __future__ import annotations

import pytest

from tests.builders.branch import Branch, measured
from tests.builders.project import Project

HANGS = "import time\ntime.sleep(9999)\n"


@pytest.fixture
def branch(project: Project) -> Branch:
    made = Branch(project)
    configuration = (project.folder / "pyproject.toml").read_text()
    project.write("pyproject.toml", configuration.replace("timeout = 20", "timeout = 5"))
    return made


def commit_that_hangs(branch: Branch) -> str:
    branch.project.write("lib.py", HANGS)
    return branch.project.commit("Hangs")


def test_a_commit_whose_import_hangs_is_recorded_as_failed_and_older_ones_go_on(
    branch: Branch,
) -> None:
    old = branch.commit(1000)
    hanging = commit_that_hangs(branch)
    new = branch.commit(2000)
    night = ("--commits", "main", "--budget", "90s")
    assert "no answer within 5 s" in branch.nightly(*night)
    assert measured(branch.runs()) == {(old, "counting"): 1, (new, "counting"): 1}
    (failed,) = (run for run in branch.runs() if run.failed)
    assert (failed.sha, set(failed.failed)) == (hanging, {"counting"})
    assert "nothing to record" in branch.nightly(*night)


def test_a_tip_that_hangs_is_recorded_and_the_next_commit_serves(branch: Branch) -> None:
    old = branch.commit(1000)
    tip = commit_that_hangs(branch)
    night = ("--commits", "main", "--budget", "90s")
    branch.nightly(*night, code=3)
    assert measured(branch.runs()) == {(old, "counting"): 1}
    assert {run.sha for run in branch.runs() if run.failed} == {tip}
    assert "nothing to record" in branch.nightly(*night)


def test_an_import_that_the_budget_cut_is_no_failure_and_older_commits_go_on(
    branch: Branch,
) -> None:
    configuration = (branch.project.folder / "pyproject.toml").read_text()
    branch.project.write("pyproject.toml", configuration.replace("timeout = 5", "timeout = 300"))
    old = branch.commit(1000)
    tip = commit_that_hangs(branch)
    said = branch.nightly("--commits", "main", "--budget", "30s")
    assert f"left {tip[:10]} 1 case: no time" in said
    assert [run.sha for run in branch.runs()] == [old]
    assert not any(run.failed for run in branch.runs())
