"""``perfci comment`` as a process, as a step of Forgejo's or Gitea's Actions runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from perfci.forges import forge_of
from tests.builders.project import Done
from tests.forges.fake import Fault
from tests.forges.forgejo.server import TOKEN, FakeForgejo, Pull
from tests.forges.github.conftest import BASE, BASE_FAILED, HEAD, MERGE, OLDER, PASSING

Step = Callable[..., Done]
Write = Callable[..., Path]


@pytest.mark.parametrize(
    "sign",
    [{}, {"FORGEJO_ACTIONS": "", "GITEA_ACTIONS": "true"}],
    ids=["Forgejo", "Gitea"],
)
def test_a_pull_request_gets_one_comment_and_one_status_which_later_reports_update(
    step: Step, forgejo: FakeForgejo, report_file: Write, sign: dict[str, str]
) -> None:
    done = step(report_file(), **sign)
    assert done.code == 0, done.text
    (comment,) = forgejo.comments
    assert f"comment created: {comment['html_url']}" in done.out
    (status,) = forgejo.statuses
    assert (status["url"], status["context"], status["status"]) == (HEAD, "perfci", "failure")
    assert status["target_url"] == "https://forgejo.example/octo/models/actions/runs/12"
    assert "up to date" in step(report_file(), **sign).out
    assert len(forgejo.wrote()) == 2
    assert "comment updated" in step(report_file(**PASSING), **sign).out
    assert [one["status"] for one in forgejo.statuses] == ["failure", "success"]


def test_what_is_linked_is_where_forgejo_shows_it(
    step: Step, forgejo: FakeForgejo, report_file: Write
) -> None:
    here = "https://forgejo.example/octo/models"
    assert step(report_file(), "--answer", 5, "--pull", 7, "--head-sha", HEAD).code == 0
    (answer,) = forgejo.comments
    assert f"[this comment]({here}/pulls/7#issuecomment-5)" in answer["body"]
    assert f"({here}/src/commit/{HEAD}/lib/encoder.py#L41)" in answer["body"]
    assert f"({here}/commit/{HEAD})" in answer["body"]
    assert forgejo.statuses == []


def test_the_forge_can_be_named_and_have_a_token_of_its_own(
    step: Step, forgejo: FakeForgejo, report_file: Write
) -> None:
    other = {"FORGEJO_ACTIONS": "", "GITHUB_TOKEN": "another", "FORGEJO_TOKEN": TOKEN}
    done = step(report_file(), "--forge", "gitea", **other)
    assert done.code == 0, done.text
    assert len(forgejo.comments) == 1


def test_a_branch_finds_its_pull_request_beyond_the_first_page(
    step: Step, forgejo: FakeForgejo, tmp_path: Path, report_file: Write
) -> None:
    every = {number: Pull(number, OLDER, BASE, f"branch-{number}") for number in range(100, 180)}
    forgejo.pulls = {**every, 7: Pull(7, HEAD, BASE, source="stranger/models")}
    owner = {"login": "stranger"}
    run = {"event": "pull_request", "head_sha": HEAD, "head_branch": "feature"}
    run |= {"head_repository": {"full_name": "stranger/models", "owner": owner}}
    event = tmp_path / "run.json"
    event.write_text(json.dumps({"workflow_run": run}))
    done = step(report_file(), "--event", event)
    assert done.code == 0, done.text
    assert [one["of"] for one in forgejo.comments] == [7]


def test_of_many_statuses_the_newest_counts(
    step: Step, forgejo: FakeForgejo, report_file: Write
) -> None:
    assert step(report_file()).code == 0
    (mine,) = forgejo.statuses
    forgejo.statuses = [mine | {"id": number, "context": "other"} for number in range(70)] + [mine]
    assert step(report_file()).code == 0
    assert len(forgejo.statuses) == 71


def test_only_the_accounts_own_comment_is_touched(
    step: Step, forgejo: FakeForgejo, report_file: Write
) -> None:
    theirs = forgejo.comment("<!-- perfci -->\nan imitation", "stranger")
    mine = forgejo.comment("<!-- perfci -->\nold")
    forgejo.comment("<!-- perfci -->\ntwin")
    assert "1 twin deleted" in step(report_file(), "--no-check").out
    assert [one["id"] for one in forgejo.comments] == [theirs["id"], mine["id"]]
    assert theirs["body"].endswith("an imitation")


@pytest.mark.parametrize("sha", [HEAD, MERGE])
def test_what_was_compared_has_to_be_where_the_pull_request_leaves_its_target(
    step: Step, forgejo: FakeForgejo, report_file: Write, sha: str
) -> None:
    forgejo.commits[MERGE] = (BASE, HEAD)
    assert step(report_file(sha, **PASSING), "--strict").code == 0
    assert forgejo.statuses[-1]["status"] == "success"
    forgejo.pulls[7].merge_base = OLDER
    forgejo.commits |= {OLDER: (), MERGE: (OLDER, HEAD)}
    assert step(report_file(sha, **PASSING), "--strict").code == 0
    assert forgejo.statuses[-1]["status"] == "failure"
    forgejo.commits[BASE] = (OLDER,)  # later on the target: its tip
    assert step(report_file(sha, **PASSING), "--strict").code == 0
    assert forgejo.statuses[-1]["status"] == "success"


@pytest.mark.parametrize(
    "moved", [Pull(7, OLDER, BASE), Pull(7, HEAD, BASE, state="closed")], ids=["pushed", "closed"]
)
def test_a_pull_request_that_moved_on_gets_nothing(
    step: Step, forgejo: FakeForgejo, report_file: Write, moved: Pull
) -> None:
    forgejo.pulls[7] = moved
    done = step(report_file())
    assert done.code == 0
    assert "nothing posted" in done.err
    assert forgejo.wrote() == []


def test_a_report_of_another_commit_is_not_posted(
    step: Step, forgejo: FakeForgejo, report_file: Write
) -> None:
    assert step(report_file(OLDER)).code == 2
    assert forgejo.wrote() == []


def test_a_forks_token_which_may_not_write_leaves_the_text_in_the_file(
    step: Step, forgejo: FakeForgejo, report_file: Write
) -> None:
    forgejo.may_write = False
    done = step(report_file())
    assert done.code == 0
    assert "comment not posted, because the token may not" in done.err
    assert "required scope" in done.err
    assert "check not set" in done.err


def test_a_command_in_a_comment_accepts_nothing_here_and_that_is_said(
    step: Step, forgejo: FakeForgejo, report_file: Write
) -> None:
    forgejo.comment("/perfci accept encoder latency_p50 because it is meant", "octo")
    done = step(report_file())
    assert done.code == 0
    assert "no command is read: Forgejo has no checks" in done.err
    assert "Accept with an [[accept]] table" in done.err


def test_an_answer_that_was_lost_does_not_post_twice(
    step: Step, forgejo: FakeForgejo, report_file: Write
) -> None:
    forgejo.faults = [Fault("POST", "/comments$", "after"), Fault("POST", "/statuses/", "after")]
    assert step(report_file()).code == 0
    assert len(forgejo.comments) == len(forgejo.statuses) == 1


@pytest.mark.parametrize(
    ("changed", "slug"),
    [
        ({"GITHUB_TOKEN": ""}, "no-token"),
        ({"GITHUB_TOKEN": "another"}, "bad-token"),
        ({"GITHUB_API_URL": ""}, "bad-address"),
        ({"GITHUB_REPOSITORY": "octo"}, "no-repository"),
    ],
)
def test_what_a_step_lacks_is_a_usage_error(
    step: Step, forgejo: FakeForgejo, report_file: Write, changed: dict[str, str], slug: str
) -> None:
    done = step(report_file(), **changed)
    assert done.code == 2
    assert f"[{slug}]" in done.err


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "github"),
        ({"GITHUB_ACTIONS": "true"}, "github"),
        ({"GITHUB_ACTIONS": "true", "GITEA_ACTIONS": "true"}, "gitea"),
        ({"GITHUB_ACTIONS": "true", "FORGEJO_ACTIONS": "true"}, "forgejo"),
        ({"GITLAB_CI": "true"}, "gitlab"),
        ({"GITLAB_CI": ""}, "github"),
    ],
)
def test_a_forges_ci_is_known_by_its_variables(environment: dict[str, str], expected: str) -> None:
    assert forge_of(environment) == expected


def test_a_case_that_failed_on_base_alone_does_not_pass_under_strict(
    step: Step, forgejo: FakeForgejo, report_file: Write
) -> None:
    assert step(report_file(**BASE_FAILED), "--strict").code == 0
    assert forgejo.statuses[-1]["status"] == "failure"
