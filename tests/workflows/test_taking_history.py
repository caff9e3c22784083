"""The steps that take what nights left: the history so far, and what each GPU recorded."""

from __future__ import annotations

import subprocess
from pathlib import Path

from perfci.measure.checkout.git import open_repository
from tests.builders.project import Project
from tests.workflows.examples import parsed, run_step, step

ROOT = Path(__file__).parents[2]
ACTION = parsed((ROOT / "actions" / "comment" / "action.yml").read_text(encoding="utf-8"))


# A clone as actions/checkout leaves it: none of its branches is marked as the default one.
def test_the_default_branch_is_known_afterwards_also_where_there_is_a_main(
    project: Project,
) -> None:
    project.commit("first")
    project.git("switch", "--quiet", "--create", "develop")
    project.commit("second")
    clone = project.folder.parent / "clone"
    subprocess.run(["git", "clone", "--quiet", str(project.folder), str(clone)], check=True)
    subprocess.run(["git", "remote", "set-head", "origin", "--delete"], cwd=clone, check=True)
    assert open_repository(clone).default_base() == "origin/main"  # a guess, which is wrong
    taking = step(ACTION, "Take the history so far")
    settings = {"BRANCH": "develop", "HISTORY": "perfci-history"}
    assert set(settings) == set(taking["env"])
    done = run_step(taking["run"], clone, RUNNER_TEMP=str(clone.parent), **settings)
    assert done.returncode == 0, done.stderr
    assert "no history yet" in done.stdout
    assert open_repository(clone).default_base() == "origin/develop"
