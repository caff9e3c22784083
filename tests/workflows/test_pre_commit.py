"""The hooks for pre-commit, run by pre-commit itself in a user's repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.project import Project

pytestmark = [pytest.mark.processes, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
CONFIGURATION = """\
repos:
  - repo: {hooks}
    rev: v1
    hooks:
      - id: perfci-list
      - id: perfci-compare
        args: [HEAD~1, HEAD, --rounds, "2"]
"""


@pytest.fixture
def hooked(project: Project, tmp_path: Path) -> Project:
    """A repository whose hooks come from a repository with perfci's list of them."""
    hooks = Project(tmp_path / "hooks")
    hooks.commit(
        "hooks", **{".pre-commit-hooks.yaml": (ROOT / ".pre-commit-hooks.yaml").read_text()}
    )
    hooks.git("tag", "v1")
    project.counting(500)
    project.commit("base", **{".pre-commit-config.yaml": CONFIGURATION.format(hooks=hooks.folder)})
    return project


def pre_commit(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    folder = Path(sys.executable).parent
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", "--all-files", "--verbose", *arguments],
        cwd=project.folder,
        env={
            **project.environment(),
            "PATH": f"{folder}:/usr/bin:/bin",
            "PRE_COMMIT_HOME": str(project.cache),
        },
        check=False,
        capture_output=True,
        text=True,
    )


def test_a_benchmark_that_cannot_be_read_stops_the_commit(hooked: Project) -> None:
    done = pre_commit(hooked, "perfci-list")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "counting" in done.stdout
    hooked.commit("broken", **{"benchmarks/bench_counting.py": "import absent_module\n"})
    done = pre_commit(hooked, "perfci-list")
    assert done.returncode == 1
    assert "absent_module" in done.stdout


def test_a_push_is_compared(hooked: Project) -> None:
    hooked.counting(5000)
    hooked.commit("slower")
    done = pre_commit(hooked, "perfci-compare", "--hook-stage", "pre-push")
    assert done.returncode == 1, done.stdout + done.stderr  # two rounds decide nothing
    assert "looks slower, not decided" in done.stdout
    assert "latency_p50" in done.stdout or "P50" in done.stdout, done.stdout
