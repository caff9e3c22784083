"""The default branch's workflows, by act: a push stores its baselines, a night checks them."""

from __future__ import annotations

import json

import pytest

from tests.project import Project
from tests.workflows.acting import Act

REPOSITORY = "octo/models"


@pytest.mark.slow
def test_a_push_stores_the_baselines_that_the_night_checks_against(project: Project) -> None:
    project.counting(1000)
    project.commit("base")
    done = project.perfci("init", "--github", "--install", "perfci --version")
    assert done.code == 0, done.text
    project.commit("the gate")
    folder = project.folder.parent / "act"
    folder.mkdir()
    server = project.folder.parent / "server"
    bare = server / REPOSITORY
    bare.parent.mkdir(parents=True)
    project.git("clone", "--quiet", "--bare", str(project.folder), str(bare))
    act = Act(project.folder, folder, {"PERFCI_CACHE_DIR": str(project.cache)})
    # act's steps have this folder as their home: their git finds the server here
    (folder / ".gitconfig").write_text(
        f'[url "{server.as_uri()}/"]\n    insteadOf = https://github.com/\n'
    )
    variables = {"GITHUB_REPOSITORY": REPOSITORY}

    pushed = act.run("perfci-baseline.yml", "push", {"ref": "refs/heads/main"}, **variables)
    assert pushed.returncode == 0, pushed.stdout[-4000:]
    project.git("pull", "--quiet", "--ff-only", str(bare), "main")
    subject = project.git("log", "-1", "--format=%an: %s").strip()
    assert subject.startswith("github-actions[bot]: perfci: baselines of ")
    stored = {path.name.rsplit("-", 1)[0] for path in project.folder.glob("baselines/*/*-*.json")}
    assert stored == {"counting", "steady"}

    night = act.run("perfci-nightly.yml", "workflow_dispatch", {}, **variables)
    assert (act.store / "perfci-nightly" / "report.json").exists(), night.stdout[-4000:]
    report = json.loads((act.store / "perfci-nightly" / "report.json").read_text())
    assert report["command"] == "check"
    assert {row["status"] for row in report["results"]}.isdisjoint({"new", "not_comparable"})
