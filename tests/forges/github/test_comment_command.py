"""``perfci comment`` as a process, as a step of a workflow runs it."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfci.finding import stated
from perfci.model.report import Verdict
from perfci.model.run import Environment
from tests.builders.project import Project
from tests.forges.github import server
from tests.forges.github.conftest import (
    BASE,
    BASE_FAILED,
    FORK,
    HEAD,
    MERGE,
    OLDER,
    PASSING,
    Comment,
)
from tests.forges.github.server import FakeGitHub, Fault
from tests.report.examples import FACTS


def body_of(project: Project) -> str:
    return (project.folder / "perfci-comment.md").read_text(encoding="utf-8")


def test_a_forks_report_becomes_comment_and_check_once(
    comment: Comment, github: FakeGitHub, project: Project, report_file: Callable[..., Path]
) -> None:
    path = report_file(MERGE)
    done = comment(path)
    assert done.code == 0, done.text
    assert "comment created: https://github.com/octo/models/pull/7" in done.out
    assert "check is failure" in done.out
    (left,) = github.comments
    assert left["body"] == body_of(project)
    assert left["body"].splitlines()[:2] == ["<!-- perfci -->", f"<!-- perfci head={HEAD} -->"]
    (check,) = github.checks
    assert (check["head_sha"], check["conclusion"]) == (HEAD, "failure")
    assert check["details_url"] == "https://github.com/octo/models/actions/runs/12"
    assert len(github.annotations[check["id"]]) == 1
    again = comment(path)
    assert "up to date" in again.out
    assert len(github.wrote()) == 2


def test_a_pull_request_event_is_enough(
    comment: Comment, github: FakeGitHub, tmp_path: Path, report_file: Callable[..., Path]
) -> None:
    event = tmp_path / "pull.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": HEAD}}}))
    done = comment(report_file(), "--event", event, "--no-check")
    assert done.code == 0, done.text
    assert len(github.comments) == 1
    assert github.checks == []


def test_a_pull_request_can_be_named(
    comment: Comment, github: FakeGitHub, report_file: Callable[..., Path]
) -> None:
    done = comment(report_file(), "--pull", "7", "--no-check")
    assert done.code == 0, done.text
    assert f"head={HEAD}" in github.comments[0]["body"]
    assert "nothing posted" in comment(report_file(), "--pull", "7", "--head-sha", OLDER).err


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try each request once."""
    monkeypatch.setattr("perfci.forges.github._TRIES", 1)


@pytest.fixture
def group(tmp_path: Path) -> Path:
    """The event of a run that measured a merge group of this repository."""
    owner, name = server.REPOSITORY.split("/")
    here = {"full_name": server.REPOSITORY, "name": name, "owner": {"login": owner}}
    run = {
        "event": "merge_group",
        "head_sha": HEAD,
        "head_branch": f"gh-readonly-queue/main/pr-7-{BASE}",
        "head_repository": here,
    }
    event = tmp_path / "group.json"
    event.write_text(json.dumps({"workflow_run": run, "repository": here}))
    return event


def test_a_merge_group_gets_the_check_alone(
    comment: Comment,
    github: FakeGitHub,
    project: Project,
    group: Path,
    report_file: Callable[..., Path],
) -> None:
    github.pulls.clear()
    done = comment(report_file(**PASSING), "--event", group)
    assert done.code == 0, done.text
    (check,) = github.checks
    assert (check["head_sha"], check["conclusion"]) == (HEAD, "success")
    assert check["output"]["summary"] == body_of(project)
    assert {path.rpartition("/")[2] for _, path in github.requests} == {"check-runs"}
    assert comment(report_file(MERGE), "--event", group).code == 2
    assert comment(report_file(), "--event", group, "--no-check").code == 0
    assert len(github.wrote()) == 1


@pytest.mark.usefixtures("impatient")
def test_a_merge_group_whose_check_cannot_be_set_leaves_the_report_on_the_summary_page(
    comment: Comment,
    github: FakeGitHub,
    tmp_path: Path,
    group: Path,
    report_file: Callable[..., Path],
) -> None:
    github.rights.clear()
    done = comment(report_file(), "--event", group)
    assert done.code == 0
    assert "check not set" in done.err
    summary = tmp_path / "summary.md"
    assert "perfci" in summary.read_text(encoding="utf-8")
    summary.unlink()
    github.rights.add("checks")
    github.faults = [Fault("POST", "/check-runs$", times=99)]
    assert comment(report_file(), "--event", group).code == 4
    assert "perfci" in summary.read_text(encoding="utf-8")


def test_a_token_without_rights_leaves_the_report_on_the_summary_page(
    comment: Comment,
    github: FakeGitHub,
    project: Project,
    tmp_path: Path,
    report_file: Callable[..., Path],
) -> None:
    github.rights.clear()
    done = comment(report_file())
    assert done.code == 0
    assert "comment not posted" in done.err
    assert "Resource not accessible by integration" in done.err
    assert "check not set" in done.err
    assert body_of(project) in (tmp_path / "summary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("sha", "kind", "said"), [(OLDER, "open", "newer head"), (HEAD, "closed", "closed or merged")]
)
def test_a_pull_request_that_moved_on_gets_nothing(
    comment: Comment,
    github: FakeGitHub,
    project: Project,
    report_file: Callable[..., Path],
    sha: str,
    kind: str,
    said: str,
) -> None:
    github.pulls[7] = server.Pull(7, sha, source=FORK, state=kind)
    done = comment(report_file())
    assert done.code == 0
    assert said in done.err
    assert github.wrote() == []
    assert body_of(project).startswith("<!-- perfci -->")


@pytest.mark.parametrize("sha", [OLDER, "../../issues/1", ""])
def test_a_report_of_another_commit_is_not_posted(
    comment: Comment, github: FakeGitHub, report_file: Callable[..., Path], sha: str
) -> None:
    done = comment(report_file(sha))
    assert done.code == 2
    assert "other-head" in done.err
    assert github.wrote() == []


@pytest.mark.usefixtures("impatient")
def test_a_failing_github_is_told_and_the_check_set_all_the_same(
    comment: Comment, github: FakeGitHub, project: Project, report_file: Callable[..., Path]
) -> None:
    github.faults = [Fault("POST", "/comments$", times=99)]
    done = comment(report_file())
    assert done.code == 4
    assert "502" in done.err
    assert len(github.checks) == 1
    assert body_of(project).startswith("<!-- perfci -->")


@pytest.mark.usefixtures("impatient")
def test_where_comment_and_check_fail_both_are_told(
    comment: Comment, github: FakeGitHub, report_file: Callable[..., Path]
) -> None:
    github.faults = [
        Fault("POST", "/comments$", times=99),
        Fault("POST", "/check-runs$", status=503, times=99),
    ]
    done = comment(report_file())
    assert done.code == 4
    assert "check-runs was answered" in done.err
    assert "502" in done.err
    assert "503" in done.err


@pytest.mark.parametrize(
    ("arguments", "configured", "expected"),
    [((), "", "neutral"), (("--strict",), "", "failure"), ((), "strict = true\n", "failure")],
)
def test_strictness_is_the_checkouts_that_it_runs_in(
    comment: Comment,
    github: FakeGitHub,
    project: Project,
    report_file: Callable[..., Path],
    arguments: tuple[str, ...],
    configured: str,
    expected: str,
) -> None:
    project.write("pyproject.toml", f"[tool.perfci]\n{configured}")
    path = report_file(**PASSING | {"verdict": Verdict("inconclusive", (stated("noise"),))})
    done = comment(path, *arguments, "--exit-with-verdict")
    assert github.checks[0]["conclusion"] == expected
    assert done.code == (3 if expected == "failure" else 0), done.text


@pytest.mark.usefixtures("impatient")
def test_a_github_that_cannot_be_reached_is_told(
    comment: Comment, project: Project, report_file: Callable[..., Path]
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        done = comment(report_file(), GITHUB_API_URL=address)
    assert done.code == 4
    assert "got no answer" in done.err
    assert body_of(project).startswith("<!-- perfci -->")


@pytest.mark.parametrize(
    ("environment", "slug"),
    [
        ({"GITHUB_TOKEN": ""}, "no-token"),
        ({"GITHUB_EVENT_PATH": ""}, "no-event"),
        ({"GITHUB_REPOSITORY": ""}, "no-repository"),
        ({"GITHUB_REPOSITORY": "octo/models/pulls"}, "no-repository"),
        ({"GITHUB_REPOSITORY": "octo/.."}, "no-repository"),
        ({"GITHUB_API_URL": "github"}, "bad-address"),
    ],
)
def test_what_a_step_lacks_is_a_usage_error(
    comment: Comment,
    github: FakeGitHub,
    report_file: Callable[..., Path],
    environment: dict[str, str],
    slug: str,
) -> None:
    done = comment(report_file(), **environment)
    assert done.code == 2
    assert f"[{slug}]" in done.err
    assert github.requests == []


def test_a_wrong_token_is_a_usage_error(comment: Comment, report_file: Callable[..., Path]) -> None:
    done = comment(report_file(), GITHUB_TOKEN="another")
    assert done.code == 2
    assert "Bad credentials" in done.err


def test_several_environments_are_one_comment_and_the_worst_check(
    comment: Comment, github: FakeGitHub, report_file: Callable[..., Path], other: dict[str, Any]
) -> None:
    done = comment(report_file(), report_file(name="other.json", **other))
    assert done.code == 0, done.text
    assert len(github.comments) == 1
    assert "worst of 2 environments" in github.checks[0]["output"]["title"]


@pytest.fixture
def other() -> dict[str, Any]:
    """What differs in the report of another machine, where nothing moved."""
    return {**PASSING, "environment": Environment("another-key", {**FACTS, "cpu": "another"})}


@pytest.mark.parametrize("verdict", [None, Verdict("pass", ())])
def test_a_case_that_failed_on_base_alone_does_not_pass_under_strict(
    comment: Comment, github: FakeGitHub, report_file: Callable[..., Path], verdict: Verdict | None
) -> None:
    path = report_file(**BASE_FAILED | ({"verdict": verdict} if verdict else {}))
    done = comment(path, "--strict", "--exit-with-verdict")
    assert done.code == 3, done.text
    assert [one["conclusion"] for one in github.checks] == ["failure"]
