"""``perfci compare`` as users run it: real repositories, real processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.builders.project import Project, assert_ends, rows

TELLS_ITS_PYTHON = """\
import sys
import perfci

@perfci.benchmark
def work():
    in_venv = perfci.metric("in_venv", lambda: float(sys.prefix.endswith("/venv")), exact=True)
    return (lambda: sum(range(500))), in_venv
"""


@pytest.fixture
def slowed(project: Project) -> Project:
    """``main`` and ``feature``: feature's ``work`` costs three times as much."""
    project.counting(1000)
    project.commit("base")
    project.git("checkout", "--quiet", "-b", "feature")
    project.counting(3000)
    project.commit("head")
    return project


def test_a_slowed_case_fails_and_its_neighbour_does_not(slowed: Project) -> None:
    report = slowed.report("compare", "main", "feature", code=1)
    slow, steady = rows(report, "counting")["latency_p50"], rows(report, "steady")["latency_p50"]
    assert slow["status"] == "regressed"
    assert slow["method"] == "paired_t"
    assert 2.0 < slow["ratio"] < 4.5
    assert steady["status"] != "regressed"
    assert report["verdict"]["status"] == "fail"
    assert "counting" in report["verdict"]["reasons"][0]
    (written,) = [one for one in report["definitions"] if one["benchmark"] == "counting"]
    line = (slowed.folder / written["file"]).read_text().splitlines()[written["line"] - 1]
    assert "counting" in line or line.startswith("@perfci.benchmark")


def test_the_other_way_round_is_an_improvement_and_passes(slowed: Project) -> None:
    report = slowed.report("compare", "feature", "main")
    assert rows(report, "counting")["latency_p50"]["status"] == "improved"
    assert report["verdict"]["status"] != "fail"


def test_the_same_commit_passes(slowed: Project) -> None:
    report = slowed.report("compare", "HEAD", "HEAD", "--allow-same-commit")
    assert report["verdict"]["status"] in {"pass", "inconclusive"}
    assert not [row for row in report["results"] if row["status"] == "regressed"]


def test_uncommitted_changes_are_a_side_and_the_checkout_is_untouched(slowed: Project) -> None:
    slowed.counting(20_000)
    slowed.write("scratch.txt", "mine")
    before = slowed.git("status", "--porcelain")
    report = slowed.report("compare", "HEAD", "-k", "counting", code=1)
    assert report["head"]["dirty"] is True
    assert rows(report, "counting")["latency_p50"]["ratio"] > 4
    assert slowed.git("status", "--porcelain") == before
    assert slowed.git("worktree", "list").count("\n") == 1


@pytest.mark.processes
@pytest.mark.usefixtures("single_round")
def test_two_pythons_can_be_compared(project: Project) -> None:
    folder = project.folder.parent / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    project.commit("base", **{"benchmarks/bench_prefix.py": TELLS_ITS_PYTHON})
    options = ("--allow-same-commit", "--base-python", str(folder / "bin/python"))
    report = project.report("compare", "HEAD", "HEAD", *options)
    assert report["base"]["python"] == str(folder / "bin/python")
    assert report["head"]["python"] == sys.executable
    row = rows(report, "work")["in_venv"]
    assert (row["base"]["center"], row["head"]["center"]) == (1.0, 0.0)


@pytest.mark.processes
def test_working_memory_that_doubled_fails(slowed: Project) -> None:
    for branch, size in (("small", 8), ("large", 16)):
        slowed.git("checkout", "--quiet", "-B", branch, "main")
        slowed.commit(
            branch, **{"lib.py": f"def work():\n    return len(bytearray({size} << 20))\n"}
        )
    selected = ("-k", "counting", "--rounds", "8")  # the fewest that four gates need are six
    report = slowed.report("compare", "small", "large", *selected, code=1)
    row = rows(report, "counting")["host_memory_over_setup"]
    assert (row["status"], row["gate"]) == ("regressed", "fail")
    assert row["difference"] == pytest.approx(8 << 20, rel=0.05)


def test_two_rounds_are_a_quick_look_that_decides_nothing(slowed: Project) -> None:
    report = slowed.report("compare", "main", "feature", "-k", "counting", "--rounds", "2")
    row = rows(report, "counting")["latency_p50"]
    assert (row["base"]["workers"], row["head"]["workers"], row["status"]) == (2, 2, "inconclusive")
    assert row["ratio"] > 1.0
    assert (row["ratio_lo"], row["p"], row["head"]["hi"]) == (None, None, None)
    assert report["verdict"]["status"] == "inconclusive"
    assert "verdict; 5 rounds are needed" in report["verdict"]["reasons"][0]


def test_a_killed_parent_leaves_no_worker_behind(slowed: Project, tmp_path: Path) -> None:
    said = tmp_path / "pid"
    slowed.write("benchmarks/bench_slow.py", SLOW.format(path=str(said)))
    slowed.commit("slow")
    process = slowed.start("compare", "HEAD", "HEAD", "--allow-same-commit", "-k", "slow")
    deadline = time.monotonic() + 60
    while not said.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    worker, child = map(int, said.read_text().split())
    assert Path(f"/proc/{worker}").exists()
    assert Path(f"/proc/{child}").exists()
    process.kill()
    process.communicate()
    assert_ends(worker)
    assert_ends(child)
    assert list(slowed.cache.glob("session-*"))
    assert slowed.perfci("list").code == 0
    assert list(slowed.cache.glob("session-*")) == []  # the next start sweeps
    assert slowed.git("worktree", "list").count("\n") == 1


SLOW = """\
import os, subprocess, time, perfci

@perfci.benchmark
def slow():
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    with open({path!r} + ".new", "w") as file:
        file.write(f"{{os.getpid()}} {{child.pid}}")
    os.rename({path!r} + ".new", {path!r})  # whole, or not there
    time.sleep(60)
    return lambda: None
"""


@pytest.mark.parametrize(
    "sides", [("HEAD",), ("HEAD", "HEAD"), ("feature", "."), ("HEAD", "--head-python", "python3")]
)
def test_a_commit_is_not_compared_with_itself_unless_asked_for(
    slowed: Project, sides: tuple[str, ...]
) -> None:
    """It was measured for minutes, and the exit code was that of a pass."""
    pythons = ("--base-python", "python3") if "--head-python" in sides else ()
    done = slowed.perfci("compare", *sides, *pythons).without_traceback()
    assert done.code == 2
    assert "[same-sides]" in done.err
    assert "nothing to compare" in done.err
    assert "--allow-same-commit" in done.err
    assert ("the working tree has no changes" in done.err) is (sides != ("HEAD", "HEAD"))
