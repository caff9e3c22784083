"""The nightly check reports; it doesn't gate: ``strict`` is for pull requests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perfci.commands.workflows import render_workflow
from tests.builders.project import Project
from tests.workflows.examples import PLAIN, parsed, run_step, step

pytestmark = [pytest.mark.slow, pytest.mark.processes]

SCRIPT = step(parsed(render_workflow("perfci-nightly.yml", PLAIN)), "Check")["run"]


@pytest.fixture
def strict(project: Project) -> Project:
    """A strict project with a baseline whose benchmark has changed since: nothing is compared."""
    project.counting(1000)
    with (project.folder / "pyproject.toml").open("a") as file:
        file.write("strict = true\n")
    project.commit("base")
    done = project.perfci("baseline", "update", "-k", "steady")
    assert done.code == 0, done.text
    with (project.folder / "benchmarks" / "bench_counting.py").open("a") as file:
        file.write("\n# another meaning\n")
    project.commit("stored")
    return project


def check_of_the_night(project: Project, script: str) -> subprocess.CompletedProcess[str]:
    temporary = project.folder.parent / "runner"
    bin_folder = temporary / "perfci" / "bin"
    bin_folder.mkdir(parents=True, exist_ok=True)
    for name, command in (("perfci", f"{sys.executable} -m perfci"), ("python", sys.executable)):
        (bin_folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (bin_folder / name).chmod(0o755)
    return run_step(script, project.folder, RUNNER_TEMP=str(temporary))


def verdict(project: Project) -> str:
    report = json.loads(Path(project.folder / "report.json").read_text())
    assert report["command"] == "check"
    return report["verdict"]["status"]


def test_an_inconclusive_night_is_not_red_where_pull_requests_are_strict(strict: Project) -> None:
    done = check_of_the_night(strict, SCRIPT)
    assert verdict(strict) == "inconclusive", done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    # and that is the option's doing
    assert check_of_the_night(strict, SCRIPT.replace(" --no-strict", "")).returncode == 3
    assert verdict(strict) == "inconclusive"
