"""A fork's pull request is measured by base's benchmarks: its author does not choose them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from perfci.commands.workflows import render_workflow
from tests.builders.project import Project
from tests.workflows.test_own_workflows import CHOICES

FORK = "github.event.pull_request.head.repo.full_name != github.repository"


@pytest.mark.parametrize("fork", ["true", "false"])
def test_a_forks_pull_request_runs_bases_benchmarks(tmp_path: Path, fork: str) -> None:
    job = YAML(typ="safe").load(render_workflow("perfci.yml", CHOICES))["jobs"]["measure"]
    (step,) = [step for step in job["steps"] if step.get("name") == "Measure"]
    assert FORK in step["env"]["FORK"]

    project = Project(tmp_path / "project")
    base = project.commit("base")
    project.commit("head", other="")
    stub = tmp_path / "temp" / "perfci" / "bin" / "perfci"
    stub.parent.mkdir(parents=True)
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stub.chmod(0o755)
    environment = {
        **os.environ,
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "BASE": base,
        "FORK": fork,
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=project.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    chosen = ["--benchmarks-of", base.strip()] if fork == "true" else []
    words = done.stdout.splitlines()
    assert words[words.index("compare") : words.index("--python")] == [
        *("compare", base.strip(), "HEAD"),
        *chosen,
    ]
