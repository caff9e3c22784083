"""The default branch's workflows, by act: a push stores baselines, a night checks and records."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest

from tests.builders.branch import Branch, away_from_midnight
from tests.builders.project import Project
from tests.workflows.acting import PERFCI, Act

pytestmark = [pytest.mark.processes, pytest.mark.slow]

REPOSITORY = "octo/models"


@pytest.mark.slow
@pytest.mark.timeout(590)
def test_a_push_stores_the_baselines_that_the_night_checks_against(project: Project) -> None:
    Branch(project).commit(1000)
    installs = ("--install", "perfci --version")
    more = ("--with", "baseline", "--with", "nightly", "--action", PERFCI)
    done = project.perfci("init", "--github", *more, *installs)
    assert done.code == 0, done.text
    nightly = project.folder / ".github" / "workflows" / "perfci-nightly.yml"
    text = re.sub(r"python -m pip install --.*", "perfci --version", nightly.read_text())
    nightly.write_text(text)
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
    night_of = partial(act.run, "perfci-nightly.yml", "workflow_dispatch", {}, **variables)

    pushed = act.run("perfci-baseline.yml", "push", {"ref": "refs/heads/main"}, **variables)
    assert pushed.returncode == 0, pushed.stdout[-4000:]
    project.git("pull", "--quiet", "--ff-only", str(bare), "main")
    subject = project.git("log", "-1", "--format=%an: %s").strip()
    assert subject.startswith("github-actions[bot]: perfci: baselines of ")
    stored = {path.name.rsplit("-", 1)[0] for path in project.folder.glob("baselines/*/*-*.json")}
    assert stored == {"counting"}

    away_from_midnight(240)
    night = night_of(token="a-token")  # the check may find noise: its exit code is not told here
    left = act.store / "perfci-night-1" / "report-1.json"
    assert left.exists(), night.stdout[-4000:]
    report = json.loads(left.read_text())
    assert report["command"] == "check"
    assert {row["status"] for row in report["results"]}.isdisjoint({"new", "not_comparable"})
    assert (act.store / "perfci-trend" / "site" / "index.html").exists(), night.stdout[-4000:]
    assert (act.store / "perfci-trend" / "trend.json").exists()
    fetch = ("fetch", "--quiet", str(bare), "+perfci-history:perfci-history")
    project.git(*fetch)
    first = project.git("show", "perfci-history:history.jsonl")
    tip = project.git("rev-parse", "main").strip()
    assert tip in first

    again = night_of(token="a-token")
    assert "nothing to record" in again.stdout, again.stdout[-4000:]
    project.git(*fetch)
    assert project.git("rev-list", "--count", "perfci-history").strip() == "2"
    assert set(first.splitlines()) <= set(
        project.git("show", "perfci-history:history.jsonl").splitlines()
    )
