"""From a pull request to its comment, by act: both stages, a real repository, a real perfci."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders.project import Project
from tests.builders.simulated import Simulated
from tests.forges.github.server import REPOSITORY, TOKEN, FakeGitHub, Pull
from tests.workflows.acting import PERFCI, Act

pytestmark = [pytest.mark.processes, pytest.mark.slow]

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
        given = ("--install", "true", "--action", PERFCI)
        done = project.perfci("init", "--github", *given, *arguments)
        assert done.code == 0, done.text
        gate = project.commit("the gate")
        project.git("switch", "--quiet", "--create", BRANCH)
        project.counting(30_000)
        self.head = project.commit("slower")
        project.git("switch", "--quiet", "main")
        self.project = project
        self.github = github
        github.pulls[7] = Pull(7, self.head, BRANCH, REPOSITORY)
        github.commits |= {gate: (), self.head: (gate,)}
        environment = {"PERFCI_CACHE_DIR": str(project.cache)}
        folder = project.folder.parent / "act"
        folder.mkdir()
        self.act = Act(project.folder, folder, environment)

    def measure(
        self, action: str = "synchronize", **event: Any
    ) -> subprocess.CompletedProcess[str]:
        pull = {
            "number": 7,
            "head": {"ref": BRANCH, "sha": self.head, "repo": {"full_name": REPOSITORY}},
            "base": {"ref": "main"},
        }
        event = {"action": action, "number": 7, "pull_request": pull, **event}
        return self.measure_for("pull_request", event)

    def measure_for(self, name: str, event: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        owner, called = REPOSITORY.split("/")
        repository = {"name": called, "full_name": REPOSITORY, "owner": {"login": owner}}
        event = {**event, "repository": repository}
        return self.act.run("perfci.yml", name, event, GITHUB_REPOSITORY=REPOSITORY)

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
        shard = name.removeprefix("perfci-report").removesuffix("-of-2")
        return self.act.store / name / f"report{shard}.json"


@pytest.mark.slow
def test_a_slower_pull_request_is_measured_and_commented_on(
    project: Project, github: FakeGitHub
) -> None:
    gated = Gated(project, github)
    reworded = gated.measure("edited", changes={"title": {"from": "faster"}})
    assert "Measure" not in reworded.stdout, reworded.stdout[-4000:]
    measured = gated.measure("edited", changes={"base": {"ref": {"from": "release"}}})
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
    assert "### ❌ perfci: " in comment["body"]
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
    """Leave what stage 1 would leave, without act and from simulated workers."""
    gated.project.executor = Simulated()
    arguments = ("--shard", shard) if shard else ()
    path = gated.artifact(name)
    path.parent.mkdir()
    done = gated.project.perfci("compare", "main", BRANCH, *arguments, "--json", str(path))
    assert path.exists(), done.text


@pytest.mark.slow
def test_a_merge_group_is_measured_by_a_job_for_each_shard_and_its_check_set(
    project: Project, github: FakeGitHub
) -> None:
    gated = Gated(project, github, "--shards", "2")
    project.git("switch", "--quiet", "--create", "before")
    project.write("notes.txt", "another pull request\n")
    before = project.commit("the group before")
    queued = f"gh-readonly-queue/main/pr-7-{before}"
    project.git("switch", "--quiet", "--create", queued)
    project.git("merge", "--quiet", "--no-ff", "-m", "the group", BRANCH)
    head = project.git("rev-parse", "HEAD").strip()
    project.git("switch", "--quiet", "main")
    group = {"head_sha": head, "head_ref": f"refs/heads/{queued}", "base_sha": before}
    event = {"action": "checks_requested", "merge_group": group}
    measured = gated.measure_for("merge_group", event)
    names = sorted(path.name for path in gated.act.store.iterdir())
    assert names == ["perfci-report-1-of-2", "perfci-report-2-of-2"], measured.stdout[-4000:]
    reports = [json.loads(gated.artifact(name).read_text()) for name in names]
    assert [report["shard"] for report in reports] == ["1/2", "2/2"]
    assert {(one["base"]["sha"], one["head"]["sha"]) for one in reports} == {(before, head)}
    run = {"event": "merge_group", "head_sha": head, "head_branch": queued}
    fork = {"id": 6, "name": "models", "full_name": "fork/models", "owner": {"login": "fork"}}
    another = gated.comment(**run, head_repository=fork)
    assert "Comment" not in another.stdout, another.stdout[-4000:]
    assert github.requests == []
    commented = gated.comment(**run)
    assert commented.returncode == 0, commented.stdout[-4000:]
    assert github.comments == []
    (check,) = github.checks
    assert (check["head_sha"], check["conclusion"]) == (head, "failure")
    assert check["output"]["title"].startswith(("fail: ", "inconclusive: looks slower"))
    assert "missing" not in check["output"]["summary"]


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
    gated.artifact("perfci-report-1-of-2").write_text("damaged")
    refused = gated.comment(head_repository=fork)
    assert refused.returncode != 0, refused.stdout[-4000:]
    assert len(github.comments) == 1
    assert titles(github) == ["error: the reports of the shards can't be merged (#7 into main)"]


def titles(github: FakeGitHub) -> list[str]:
    """Return the titles of the checks of what could not be read, which all have failed."""
    shown = [one for one in github.checks if one["output"]["title"].startswith("error: ")]
    assert {one["conclusion"] for one in shown} == {"failure"}
    return [one["output"]["title"] for one in shown]


def test_a_hostile_artifact_is_not_read_and_fails_the_check(
    project: Project, github: FakeGitHub
) -> None:
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
    assert github.comments == []
    assert titles(github) == [
        "error: the artifact holds something that is no plain file (#7 into main)",
        "error: the artifact holds a file of more than 16 MiB (#7 into main)",
    ]


def test_without_a_report_stage_2_fails_the_check_and_comments_nothing(
    project: Project, github: FakeGitHub
) -> None:
    gated = Gated(project, github)
    strange = gated.act.store / "perfci-report-of-mine"
    strange.mkdir()
    (strange / "report.json").write_text("{}")
    done = gated.comment()
    assert done.returncode != 0, done.stdout[-4000:]
    none = "error: stage 1 left no report; its log says why (#7 into main)"
    assert titles(github) == [none]
    misplaced = gated.act.store / "perfci-report" / "perfci-report"
    misplaced.mkdir(parents=True)
    (misplaced / "report.json").write_text("{}")
    done = gated.comment()
    assert done.returncode != 0
    misplaced = "error: stage 1 left files, but no report.json at their top (#7 into main)"
    assert titles(github) == [none, misplaced]
    assert github.comments == []
