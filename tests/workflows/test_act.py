"""From a pull request to its comment, by act: both stages, a real repository, a real perfci."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.github.server import TOKEN, FakeGitHub
from tests.github.state import REPOSITORY, Pull
from tests.project import Project
from tests.workflows.acting import Act

BRANCH = "slower"


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    fake = FakeGitHub()
    yield fake
    fake.close()


class Gated:
    """A project with the workflows, and a branch that makes it slower."""

    def __init__(self, project: Project, github: FakeGitHub, *arguments: str) -> None:
        project.counting(1000)
        project.commit("base")
        install = ("--install", "perfci --version", "--report-install", "perfci --version")
        done = project.perfci("init", "--github", *install, *arguments)
        assert done.code == 0, done.text
        project.commit("the gate")
        project.git("switch", "--quiet", "--create", BRANCH)
        project.counting(30_000)
        self.head = project.commit("slower")
        project.git("switch", "--quiet", "main")
        self.project = project
        self.github = github
        github.pulls[7] = Pull(7, self.head, BRANCH, REPOSITORY)
        environment = {"PERFCI_CACHE_DIR": str(project.cache)}
        folder = project.folder.parent / "act"
        folder.mkdir()
        self.act = Act(project.folder, folder, environment)

    def measure(self) -> subprocess.CompletedProcess[str]:
        owner, name = REPOSITORY.split("/")
        event = {
            "action": "synchronize",
            "number": 7,
            "pull_request": {
                "number": 7,
                "head": {"ref": BRANCH, "sha": self.head},
                "base": {"ref": "main"},
            },
            "repository": {"name": name, "full_name": REPOSITORY, "owner": {"login": owner}},
        }
        return self.act.run("perfci.yml", "pull_request", event, GITHUB_REPOSITORY=REPOSITORY)

    def comment(self, **run: Any) -> subprocess.CompletedProcess[str]:
        owner, name = REPOSITORY.split("/")
        repository = {"id": 5, "name": name, "full_name": REPOSITORY, "owner": {"login": owner}}
        event = {
            "action": "completed",
            "workflow_run": {
                "id": 11,
                "event": "pull_request",
                "conclusion": "failure",
                "head_sha": self.head,
                "head_branch": BRANCH,
                "head_repository": repository,
                **run,
            },
            "repository": {**repository, "default_branch": "main"},
        }
        return self.act.run(
            *("perfci-report.yml", "workflow_run", event),
            token=TOKEN,
            GITHUB_REPOSITORY=REPOSITORY,
            GITHUB_API_URL=self.github.url,
        )

    def artifact(self, name: str) -> Path:
        return self.act.store / name / "report.json"


@pytest.mark.slow
def test_a_slower_pull_request_is_measured_and_commented_on(
    project: Project, github: FakeGitHub
) -> None:
    gated = Gated(project, github)
    measured = gated.measure()
    assert gated.artifact("perfci-report").exists(), measured.stdout[-4000:]
    report = json.loads(gated.artifact("perfci-report").read_text())
    assert report["head"]["sha"] == gated.head
    assert report["base"]["sha"] == project.git("rev-parse", "main").strip()
    assert report["verdict"]["status"] == "fail"
    assert measured.returncode != 0
    assert [path.name for path in gated.act.store.rglob("*.*")] == ["report.json"]

    commented = gated.comment()
    assert commented.returncode == 0, commented.stdout[-4000:]
    (comment,) = github.comments
    assert comment["issue_url"] == "7"
    assert comment["body"].startswith("<!-- perfci")
    assert "**perfci: fail**" in comment["body"]
    (check,) = github.checks
    assert (check["head_sha"], check["conclusion"]) == (gated.head, "failure")

    report["notes"].append("measured once more")
    gated.artifact("perfci-report").write_text(json.dumps(report))
    again = gated.comment()
    assert again.returncode == 0, again.stdout[-4000:]
    (updated,) = github.comments
    assert updated["id"] == comment["id"]
    assert "measured once more" in updated["body"]
    assert github.violations == []


def stored_report(gated: Gated, name: str, shard: str = "") -> None:
    """Leave what stage 1 would leave, measured without act."""
    arguments = ("--shard", shard) if shard else ()
    path = gated.artifact(name)
    path.parent.mkdir()
    done = gated.project.perfci("compare", "main", BRANCH, *arguments, "--json", str(path))
    assert path.exists(), done.text


@pytest.mark.slow
def test_shards_are_measured_by_a_job_each_and_merged(project: Project, github: FakeGitHub) -> None:
    gated = Gated(project, github, "--shards", "2")
    measured = gated.measure()
    names = sorted(path.name for path in gated.act.store.iterdir())
    assert names == ["perfci-report-1-of-2", "perfci-report-2-of-2"], measured.stdout[-4000:]
    reports = [json.loads(gated.artifact(name).read_text()) for name in names]
    assert [report["shard"] for report in reports] == ["1/2", "2/2"]
    commented = gated.comment()
    assert commented.returncode == 0, commented.stdout[-4000:]
    (comment,) = github.comments
    assert "**perfci: fail**" in comment["body"]
    assert "missing" not in comment["body"]


@pytest.mark.slow
def test_a_missing_shard_of_a_fork_is_told_and_never_a_pass(
    project: Project, github: FakeGitHub
) -> None:
    gated = Gated(project, github, "--shards", "2")
    stored_report(gated, "perfci-report-1-of-2", "1/2")
    fork = {"id": 6, "name": "models", "full_name": "fork/models", "owner": {"login": "fork"}}
    unknown = gated.comment(head_repository=fork)
    assert unknown.returncode == 0, unknown.stdout[-4000:]
    assert github.wrote() == []  # the pull request of that branch is another repository's
    github.pulls[7] = Pull(7, gated.head, BRANCH, "fork/models")
    commented = gated.comment(head_repository=fork)
    assert commented.returncode == 0, commented.stdout[-4000:]
    (comment,) = github.comments
    assert "shard 2 of 2 is missing" in comment["body"]
    (check,) = github.checks
    assert check["conclusion"] == "failure"  # GitHub lets neutral pass


def test_a_hostile_artifact_posts_nothing(project: Project, github: FakeGitHub) -> None:
    gated = Gated(project, github)
    place = gated.act.store / "perfci-report"
    place.mkdir()
    (place / "report.json").symlink_to("/etc/passwd")
    linked = gated.comment()
    assert "no plain file" in linked.stdout, linked.stdout[-4000:]
    assert linked.returncode != 0
    (place / "report.json").unlink()
    with (place / "report.json").open("wb") as file:
        file.truncate((16 << 20) + 1)
    large = gated.comment()
    assert "more than 16 MiB" in large.stdout, large.stdout[-4000:]
    assert large.returncode != 0
    assert github.requests == []


def test_without_a_report_stage_2_says_so_and_asks_github_nothing(
    project: Project, github: FakeGitHub
) -> None:
    gated = Gated(project, github)
    strange = gated.act.store / "perfci-report-of-mine"
    strange.mkdir()
    (strange / "report.json").write_text("{}")
    done = gated.comment()
    assert done.returncode == 0, done.stdout[-4000:]
    assert "stage 1 left no report" in done.stdout
    assert github.requests == []


def test_a_run_that_no_pull_request_started_is_not_commented_on(
    project: Project, github: FakeGitHub
) -> None:
    gated = Gated(project, github)
    done = gated.comment(event="push")
    assert "Comment" not in done.stdout, done.stdout[-4000:]
    assert github.requests == []
