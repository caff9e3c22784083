"""A session that is cut short: nothing is lost, and no exit code says "regression"."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.builders.project import Project, rows

pytestmark = pytest.mark.processes

SLOW = """\
import perfci

@perfci.benchmark
def steady():
    return lambda: sum(range(500))
"""


@pytest.fixture
def ready(project: Project) -> Project:
    project.write("benchmarks/bench_one.py", SLOW)
    project.commit("a benchmark")
    return project


def interrupted(project: Project, number: int, *arguments: str) -> tuple[int, str]:
    """Run perfci, interrupt it while it measures, and return its exit code and what it said."""
    logs = project.folder.parent / "logs"
    options = ("--rounds", "500", "--budget", "60s", "--log-dir", str(logs))
    before = signal.signal(number, signal.SIG_DFL)  # as nohup leaves SIGHUP, it would be ignored
    try:
        process = project.start(*arguments, *options)
    finally:
        signal.signal(number, before)
    log = logs / "session.log"
    deadline = time.monotonic() + 60
    while not (log.exists() and "round 2" in log.read_text()):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, out + err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_compare_leaves_a_report_and_is_no_pass(ready: Project, number: int) -> None:
    path = ready.folder.parent / "r.json"
    code, said = interrupted(
        ready, number, "compare", "HEAD", "HEAD", "--allow-same-commit", "--json", str(path)
    )
    assert code == 3, said
    report = json.loads(path.read_text())
    assert report["interrupted"] is True
    assert rows(report, "steady")["latency_p50"]["base"]["workers"] >= 1
    assert not list(ready.cache.glob("session-*"))


def test_an_interrupted_baseline_is_not_stored(ready: Project) -> None:
    code, said = interrupted(ready, signal.SIGINT, "baseline", "update")
    assert code == 3, said
    assert "Nothing was stored" in said
    assert not list(ready.folder.glob("baselines/*/*.json"))


def comparing(project: Project) -> tuple[list[str], Path]:
    """Return a command that compares, and the file that it writes."""
    path = project.folder.parent / "r.json"
    command = [sys.executable, "-m", "perfci", "compare", "HEAD", "HEAD", "--allow-same-commit"]
    return [*command, "--rounds", "2", "--json", str(path)], path


def test_a_closed_standard_output_loses_no_file(ready: Project) -> None:
    command, path = comparing(ready)
    process = subprocess.Popen(
        command, cwd=ready.folder, env=ready.environment(), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(120) == 0
    assert json.loads(path.read_text())["results"]


def test_a_benchmark_that_deletes_its_tree_fails_and_the_report_is_there(ready: Project) -> None:
    ready.write(
        "benchmarks/bench_two.py",
        "import os, shutil\nimport perfci\n\n@perfci.benchmark\ndef deletes():\n"
        "    shutil.rmtree(os.getcwd(), ignore_errors=True)\n    return lambda: 1\n"
        "\n@perfci.benchmark\ndef finds_none():\n    return lambda: 1\n",
    )
    ready.commit("deletes")
    # in its second round at the latest, the other case of the file finds no tree
    report = ready.report("compare", "HEAD", "HEAD", "--allow-same-commit", "--rounds", "2", code=3)
    kinds = {(one["case"], one["kind"]) for one in report["failures"]}
    assert ("deletes", "deleted_tree") in kinds
    assert any("deleted the tree" in note for note in report["notes"])


def test_a_failing_build_is_no_verdict(ready: Project) -> None:
    with (ready.folder / "pyproject.toml").open("a") as file:
        file.write('build = ["false"]\n')
    ready.commit("does not build")
    done = ready.perfci("compare", "HEAD", "HEAD", "--allow-same-commit").without_traceback()
    assert done.code == 3
    assert os.fspath("build command `false`") in done.err
