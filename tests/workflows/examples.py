"""The workflows of several projects, written as ``perfci init --github`` writes them."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from perfci.commands.workflows import (
    FOLDER,
    REQUIREMENTS,
    WORKFLOWS,
    CiOptions,
    WorkflowChoices,
    render_workflow,
)

ROOT = Path(__file__).resolve().parents[2]

PLAIN = WorkflowChoices(
    CiOptions(
        python="3.12",
        runner=("self-hosted", "gpu"),
        install=("python -m pip install 'perfci==0.1.0' .",),
        more=("baseline",),
        action=f"o/perfci@{40 * 'a'} # v0.1.0",
    ),
    branch="main",
    baselines="baselines",
    project_install=("python -m pip install .",),
    report_install=(
        f"python -m pip install --require-hashes --only-binary :all: -r {FOLDER}/{REQUIREMENTS}",
        "python -m pip install --no-deps --no-build-isolation 'perfci==0.1.0'",
    ),
)
VARIANTS = {
    "plain": PLAIN,
    "sharded": replace(
        PLAIN,
        options=replace(
            PLAIN.options,
            shards=4,
            nightly_runner=("self-hosted,linux-a100", "self-hosted,linux-h100", "cpu"),
        ),
    ),
    "hosted": replace(
        PLAIN,
        options=replace(
            PLAIN.options,
            runner=("ubuntu-latest",),
            trigger="label",
            install=(
                "python -m pip install torch",
                "python -m pip install -e '.[test]' perfci==0.1.0",
            ),
        ),
        branch="release/2",
        baselines="perf/stored lines",
        project_install=("python -m pip install torch", "python -m pip install -e '.[test]'"),
    ),
}


ACTION, COMMENT = (
    (ROOT / folder / "action.yml").read_text(encoding="utf-8")
    for folder in (".", "actions/comment")
)
"""perfci's actions: to measure, and to comment."""


def parsed(text: str) -> Any:
    """Return YAML as plain data (YAML 1.2: `on` is a string)."""
    return YAML(typ="safe").load(text)


def write_workflows(choices: WorkflowChoices, root: Path) -> Path:
    """Write the workflows below ``root``; return their folder."""
    folder = root / ".github" / "workflows"
    folder.mkdir(parents=True)
    for name in WORKFLOWS:
        (folder / name).write_text(render_workflow(name, choices), encoding="utf-8")
    return folder


def step(document: Any, name: str) -> dict[str, Any]:
    """Return the step called ``name`` of a workflow or a composite action."""
    jobs = document["jobs"].values() if "jobs" in document else [document["runs"]]
    (found,) = (one for job in jobs for one in job["steps"] if one.get("name") == name)
    return found


def run_step(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a step's script as a runner does, with nothing of this process's GitHub variables."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "GH_"))}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=600,  # an install, on a busy machine
        check=False,
    )
