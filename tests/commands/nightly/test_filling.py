"""Gaps are filled by real processes over a real repository; nothing is measured twice."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.builders.branch import Branch, logged, measured
from tests.builders.project import Project

WAITS = """\
import os, pathlib, time

pathlib.Path({begun!r}).touch()
while not os.path.exists({go!r}):
    time.sleep(0.01)

def work():
    return sum(range(2000))
"""


WAITS_IN_A_CALL = """\
import pathlib, time

def work():
    pathlib.Path({begun!r}).touch()
    time.sleep(600)
"""


def wait_for(begun: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not begun.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def branch(project: Project) -> Branch:
    return Branch(project)


def test_gaps_are_filled_the_newest_first_and_once(branch: Branch) -> None:
    first, second, third = (branch.commit(loops) for loops in (1000, 2000, 3000))
    said = branch.nightly("--commits", "main~2..main")
    assert branch.as_recorded() == [third, second]
    runs = sorted(branch.runs(), key=lambda run: run.position or 0)
    assert [(run.position, run.subject) for run in runs] == [(1, "2000 loops"), (2, "3000 loops")]
    assert {(run.source, run.branch) for run in runs} == {("nightly", "main")}
    assert "nothing to record" not in said
    assert "nothing to record" in branch.nightly("--commits", "main~2..main")
    branch.nightly("--commits", "main")
    assert measured(branch.runs()) == {(sha, "counting"): 1 for sha in (first, second, third)}


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_what_ends_a_night_costs_the_commit_in_the_works_alone(
    branch: Branch, number: signal.Signals
) -> None:
    branch.commit(1000)
    begun, go = (branch.project.folder.parent / name for name in ("begun", "go"))
    branch.project.write("lib.py", WAITS.format(begun=str(begun), go=str(go)))
    second = branch.project.commit("Waits")
    commits = [second, branch.commit(3000)]
    night = (
        "nightly",
        "--commits",
        "main~2..main",
        "--history",
        str(branch.history),
    )
    process = branch.project.start(*night)
    wait_for(begun, process)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == (-9 if number == signal.SIGKILL else 3), said
    (before,) = branch.runs()
    assert before.sha == commits[-1]
    go.touch()
    branch.nightly("--commits", "main~2..main")
    after = branch.runs()
    assert before.id in {run.id for run in after}
    assert measured(after) == {(sha, "counting"): 1 for sha in commits}


@pytest.mark.processes
def test_a_night_that_is_interrupted_says_so_of_the_tip(branch: Branch) -> None:
    begun = branch.project.folder.parent / "begun"
    branch.project.write("lib.py", WAITS_IN_A_CALL.format(begun=str(begun)))
    tip = branch.project.commit("Waits")
    process = branch.project.start("nightly", "--history", str(branch.history))
    wait_for(begun, process)
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate(timeout=60)
    assert f"left {tip[:10]} 1 case: interrupted" in shown
    assert "no time" not in shown


def test_a_new_benchmark_gets_its_past_and_the_others_are_left_alone(branch: Branch) -> None:
    old = branch.commit(1000)
    branch.nightly("--commits", "main")
    branch.add_benchmark("steady")
    new = branch.commit(1000)
    branch.nightly("--commits", "main")
    assert measured(branch.runs()) == {
        (old, "counting"): 1,
        (old, "steady"): 1,
        (new, "counting"): 1,
        (new, "steady"): 1,
    }


def test_a_commit_that_fails_to_build_is_recorded_and_not_built_again(project: Project) -> None:
    builds = project.folder.parent / "builds"
    branch = Branch(project, 'build = ["{python} build.py"]\n')
    script = f"import sys; from pathlib import Path\nlog = Path({str(builds)!r})\n"
    script += "loops = Path('lib.py').read_text().split('range(')[1].split(')')[0]\n"
    script += "print(loops, file=log.open('a'))\n"
    script += "sys.exit(f'{loops} loops are too many' if int(loops) > 2000 else 0)\n"
    good = branch.commit(1000, **{"build.py": script})
    inside = branch.commit(3000)
    better = branch.commit(2000)
    tip = branch.commit(4000)
    said = branch.nightly("--commits", "main", code=3)
    assert "build-failed" in said
    assert measured(branch.runs()) == {(sha, "counting"): 1 for sha in (good, better)}
    failed = {run.sha: dict(run.failed) for run in branch.runs() if run.failed}
    assert failed.keys() == {inside, tip}
    assert "3000 loops are too many" in failed[inside]["counting"]
    assert len({run.environment.key for run in branch.runs()}) == 1
    first = logged(builds)
    assert (first.count("3000"), first.count("4000")) == (1, 1)
    assert "nothing to record" in branch.nightly("--commits", "main")
    assert (logged(builds).count("3000"), logged(builds).count("4000")) == (1, 2)
    branch.nightly("--commits", "main", "--retry-failed", code=3)
    assert (logged(builds).count("3000"), logged(builds).count("4000")) == (2, 3)


def test_a_case_that_a_commit_does_not_have_is_recorded_as_failed(branch: Branch) -> None:
    old = branch.commit(1000)
    branch.project.write(
        "benchmarks/bench_later.py",
        "import perfci\nfrom lib import later\n\n@perfci.benchmark\ndef later_on():\n"
        "    return later\n",
    )
    branch.project.write("lib.py", "def work():\n    return 1\n\ndef later():\n    return 2\n")
    new = branch.project.commit("Later")
    said = branch.nightly("--commits", "main")
    assert "cannot import name 'later'" in said
    (failed,) = (run for run in branch.runs() if run.failed)
    assert (failed.sha, set(failed.failed)) == (old, {"later_on"})
    assert measured(branch.runs()) == {
        (old, "counting"): 1,
        (new, "counting"): 1,
        (new, "later_on"): 1,
    }
    assert "nothing to record" in branch.nightly("--commits", "main")


def test_half_a_case_is_not_recorded(branch: Branch) -> None:
    branch.project.write(
        "benchmarks/bench_slow.py",
        "import time\nimport perfci\n\n@perfci.benchmark\ndef slow():\n"
        "    time.sleep(2.5)\n    return lambda: None\n",
    )
    branch.commit(1000)
    said = branch.nightly("-k", "slow", "--budget", "5s", code=3)  # one round of two
    assert branch.runs() == []
    assert "within 5 s" not in said  # it may have ended earlier
    assert "too short for one" in said
    assert "budget-too-short" in said
