"""A fork's pull request is measured by base's benchmarks: its author does not choose them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.builders.project import Project
from tests.workflows.examples import ACTION, parsed, step

FORK = "github.event.pull_request.head.repo.full_name != github.repository"


@pytest.mark.parametrize("fork", ["true", "false"])
def test_a_forks_pull_request_runs_bases_benchmarks(tmp_path: Path, fork: str) -> None:
    action = parsed(ACTION)
    measure = step(action, "Measure")
    assert FORK in measure["env"]["FORK"]

    project = Project(tmp_path / "project")
    base = project.commit("base")
    project.commit("head", other="")
    stub = tmp_path / "temp" / "perfci-action" / "bin" / "python"
    stub.parent.mkdir(parents=True)
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stub.chmod(0o755)
    environment = {
        **os.environ,
        "RUNNER_TEMP": str(tmp_path / "temp"),
        **{f"PERFCI_{name.upper()}": given["default"] for name, given in action["inputs"].items()},
        "GROUP_BASE": base,
        "FORK": fork,
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", measure["run"]],
        cwd=project.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    chosen = [f"--benchmarks-of={base.strip()}"] if fork == "true" else []
    words = done.stdout.splitlines()
    assert words[words.index("--python=python") + 1 : -1] == [*chosen, "--", base.strip(), "HEAD"]
