"""A commit whose import hangs costs a night its time-out, and no other commit its place."""

from __future__ import annotations

import signal

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


def test_a_file_that_hangs_on_one_commit_leaves_that_commits_other_files(branch: Branch) -> None:
    branch.project.write(
        "benchmarks/bench_other.py",
        "import perfci\nfrom other import work\n\n@perfci.benchmark\ndef other():\n"
        "    return work\n",
    )
    branch.project.write("other.py", HANGS)
    old = branch.commit(1000)
    branch.project.write("other.py", "def work():\n    return 1\n")
    new = branch.commit(1000)
    branch.nightly("--commits", "main", "--budget", "120s")
    assert measured(branch.runs()) == {
        (old, "counting"): 1,
        (new, "counting"): 1,
        (new, "other"): 1,
    }
    (failed,) = (run for run in branch.runs() if run.failed)
    assert (failed.sha, set(failed.failed)) == (old, {"other"})


@pytest.mark.processes
def test_a_night_that_is_interrupted_at_once_says_nothing_of_an_environment(
    branch: Branch,
) -> None:
    commit_that_hangs(branch)
    process = branch.project.start("nightly", "--no-self-check", "--history", str(branch.history))
    assert process.stderr is not None
    while "looking for benchmarks" not in (line := process.stderr.readline()):
        assert line
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "interrupted" in out
    assert "environment" not in out
