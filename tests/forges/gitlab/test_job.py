"""``perfci comment`` as a process, as a job of GitLab CI runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perfci.model.report import Accepted
from perfci.verdict.row_status import adjust
from tests.builders.project import Done, Project
from tests.forges.fake import Fault, limited
from tests.forges.github.conftest import BASE, BASE_FAILED, HEAD, MERGE, OLDER, PASSING
from tests.forges.gitlab.conftest import PAGE
from tests.forges.gitlab.server import BOT, FakeGitLab, MergeRequest
from tests.verdict.shards import POLICY, paired

Job = Callable[..., Done]
Write = Callable[..., Path]


def test_a_merge_request_gets_one_note_and_one_status_which_later_reports_update(
    job: Job, gitlab: FakeGitLab, project: Project, report_file: Write
) -> None:
    done = job(report_file())
    assert done.code == 0, done.text
    (note,) = gitlab.notes
    body = (project.folder / "perfci-comment.md").read_text(encoding="utf-8")
    assert note["body"].replace("\u200b", "") == body.replace("\u200b", "")
    assert f"comment created: {PAGE}/-/merge_requests/7#note_{note['id']}" in done.out
    (status,) = gitlab.statuses
    assert (status["sha"], status["name"], status["status"]) == (HEAD, "perfci", "failed")
    assert status["target_url"] == f"{PAGE}/-/jobs/99"
    assert "up to date" in job(report_file()).out
    assert len(gitlab.wrote()) == 2
    again = job(report_file(**PASSING))
    assert "comment updated" in again.out
    assert [one["status"] for one in gitlab.statuses] == ["failed", "success"]
    assert len(gitlab.notes) == 1


def test_what_is_linked_is_where_gitlab_shows_it(
    job: Job, gitlab: FakeGitLab, report_file: Write
) -> None:
    assert job(report_file(), "--answer", 5, "--pull", 7, "--head-sha", HEAD).code == 0
    (answer,) = gitlab.notes
    assert f"[this comment]({PAGE}/-/merge_requests/7#note_5)" in answer["body"]
    assert f"({PAGE}/-/blob/{HEAD}/lib/encoder.py#L41)" in answer["body"]
    assert f"({PAGE}/-/commit/{HEAD})" in answer["body"]
    assert gitlab.statuses == []


@pytest.mark.parametrize("others", [0, 150])
def test_only_the_accounts_own_note_is_touched(
    job: Job, gitlab: FakeGitLab, report_file: Write, others: int
) -> None:
    for number in range(others):
        gitlab.note("<!-- perfci -->\nan imitation", "stranger")["hidden"] = number % 3 == 0
    gitlab.note("<!-- perfci -->\nof the same account, but a system note", BOT, system=True)
    mine = gitlab.note("<!-- perfci -->\nold", BOT)
    gitlab.note("<!-- perfci -->\ntwin", BOT)
    done = job(report_file(), "--no-check")
    assert done.code == 0, done.text
    assert "comment updated" in done.out
    assert "1 twin deleted" in done.out
    assert mine["body"] != "<!-- perfci -->\nold"
    assert [method for method, _ in gitlab.wrote()] == ["PUT", "DELETE"]


def test_the_author_can_be_said(job: Job, gitlab: FakeGitLab, report_file: Write) -> None:
    gitlab.note("<!-- perfci -->\nold", "another")
    done = job(report_file(), "--author", "another", "--no-check", "--dry-run")
    assert "would update the comment on !7" in done.out
    assert gitlab.wrote() == []


def test_a_pipeline_of_merged_results_is_of_the_merge_requests_head(
    job: Job, gitlab: FakeGitLab, report_file: Write
) -> None:
    merged = {"CI_COMMIT_SHA": MERGE, "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": HEAD}
    done = job(report_file(MERGE), **merged)
    assert done.code == 0, done.text
    assert f"head={HEAD}" in gitlab.notes[0]["body"]
    assert gitlab.statuses[0]["sha"] == HEAD


def test_a_branchs_pipeline_finds_its_merge_request(
    job: Job, gitlab: FakeGitLab, report_file: Write
) -> None:
    gitlab.merge_requests[8] = MergeRequest(8, HEAD, source=77)  # a fork's branch of that name
    branch = {"CI_MERGE_REQUEST_IID": "", "CI_COMMIT_BRANCH": "feature"}
    done = job(report_file(), **branch)
    assert done.code == 0, done.text
    assert [one["noteable_iid"] for one in gitlab.notes] == [7]


def test_a_branch_without_a_merge_request_is_said_what_to_do(
    job: Job, gitlab: FakeGitLab, report_file: Write
) -> None:
    gitlab.merge_requests.clear()
    done = job(report_file(), CI_MERGE_REQUEST_IID="", CI_COMMIT_BRANCH="feature")
    assert (done.code, gitlab.wrote()) == (0, []), done.text
    assert "nothing posted: no open merge request comes from feature. Open one and" in done.err
    assert "give --pull NUMBER" in done.err


def test_a_merge_request_is_called_one(job: Job, gitlab: FakeGitLab, report_file: Write) -> None:
    gitlab.branches["main"] = OLDER
    gitlab.commits[OLDER] = ()
    assert job(report_file()).code == 0
    assert gitlab.statuses[0]["description"].endswith("(!7 into main)")
    note = gitlab.notes[0]["body"]
    assert "but the merge request leaves main at no commit that GitLab knows" in note
    gitlab.merge_requests[8] = MergeRequest(8, HEAD)
    both = job(report_file(), CI_MERGE_REQUEST_IID="", CI_COMMIT_BRANCH="feature")
    assert "feature is in several merge requests (!7, !8)" in both.err
    gitlab.merge_requests[7].state = "merged"
    done = job(report_file())
    assert "nothing posted: merge request !7 is closed" in done.err
    assert "pull request" not in (note + both.text + done.text)


@pytest.mark.parametrize("branch", ["main", ""])
def test_a_pipeline_without_a_merge_request_posts_nothing(
    job: Job, gitlab: FakeGitLab, report_file: Write, branch: str
) -> None:
    done = job(report_file(), CI_MERGE_REQUEST_IID="", CI_COMMIT_BRANCH=branch)
    assert done.code == 0
    assert "nothing posted: this pipeline has no merge request. To have one, let the" in done.err
    assert '$CI_PIPELINE_SOURCE == "merge_request_event"' in done.err
    assert gitlab.requests == []


def test_a_forks_merge_request_gets_the_note_where_the_token_is(
    job: Job, gitlab: FakeGitLab, report_file: Write
) -> None:
    gitlab.merge_requests[7] = MergeRequest(7, HEAD, source=77)
    del gitlab.branches["feature"]
    gitlab.pipelines.clear()  # its pipeline is in the fork
    fork = {"CI_PROJECT_ID": "77", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "77"}
    done = job(report_file(), **fork)
    assert done.code == 0, done.text
    assert len(gitlab.notes) == 1
    assert "check not set: POST" in done.err
    assert "References for commit" in done.err


@pytest.mark.parametrize("moved", [MergeRequest(7, OLDER), MergeRequest(7, HEAD, state="merged")])
def test_a_merge_request_that_moved_on_gets_nothing(
    job: Job, gitlab: FakeGitLab, report_file: Write, moved: MergeRequest
) -> None:
    gitlab.merge_requests[7] = moved
    done = job(report_file())
    assert done.code == 0
    assert "nothing posted" in done.err
    assert gitlab.wrote() == []


@pytest.mark.parametrize("sha", [OLDER, BASE, "../../user", ""])
def test_a_report_of_another_commit_is_not_posted(
    job: Job, gitlab: FakeGitLab, report_file: Write, sha: str
) -> None:
    done = job(report_file(sha))
    assert done.code == 2
    assert "[other-head]" in done.err
    assert gitlab.wrote() == []


def test_a_comparison_with_a_commit_that_is_unknown_there_is_no_pass(
    job: Job, gitlab: FakeGitLab, report_file: Write
) -> None:
    gitlab.commits[OLDER] = ()
    gitlab.commits[HEAD] = (OLDER,)
    gitlab.commits[BASE] = (OLDER,)  # on the target, and later than where the branch left it
    gitlab.branches["main"] = BASE
    assert job(report_file(**PASSING), "--strict").code == 0
    assert gitlab.statuses[-1]["status"] == "success"
    del gitlab.commits[BASE]
    gitlab.branches["main"] = OLDER
    assert job(report_file(**PASSING), "--strict").code == 0
    assert gitlab.statuses[-1]["status"] == "failed"


def test_a_token_that_may_not_leaves_the_text_in_the_file(
    job: Job, gitlab: FakeGitLab, report_file: Write
) -> None:
    gitlab.may.clear()
    done = job(report_file())
    assert done.code == 0
    assert "comment not posted, because the token may not" in done.err
    assert "its text is in perfci-comment.md" in done.err
    assert "check not set" in done.err


@pytest.mark.parametrize(
    ("changed", "slug"),
    [
        ({"PERFCI_GITLAB_TOKEN": ""}, "no-token"),
        ({"PERFCI_GITLAB_TOKEN": "two words"}, "bad-token"),
        ({"PERFCI_GITLAB_TOKEN": "another"}, "bad-token"),
        ({"CI_MERGE_REQUEST_IID": "7/notes"}, "bad-event"),
        ({"CI_COMMIT_SHA": "main"}, "bad-sha"),
        ({"CI_COMMIT_SHA": ""}, "no-event"),
        ({"CI_API_V4_URL": "gitlab"}, "bad-address"),
        ({"CI_PROJECT_ID": "", "CI_MERGE_REQUEST_PROJECT_ID": ""}, "no-repository"),
        ({"CI_MERGE_REQUEST_PROJECT_ID": "42/../43"}, "no-repository"),
    ],
)
def test_what_a_job_lacks_is_a_usage_error(
    job: Job, gitlab: FakeGitLab, report_file: Write, changed: dict[str, str], slug: str
) -> None:
    done = job(report_file(), **changed)
    assert done.code == 2, done.text
    assert f"[{slug}]" in done.err
    assert gitlab.wrote() == []


@pytest.mark.parametrize(("source", "expected"), [(42, "success"), (77, "failed")])
def test_only_a_branch_of_the_project_itself_may_accept(
    job: Job, gitlab: FakeGitLab, report_file: Write, source: int, expected: str
) -> None:
    gitlab.merge_requests[7] = MergeRequest(7, HEAD, source=source)
    (slower,) = adjust([paired("a", 1.3)], POLICY)
    rows = (*PASSING["results"], replace(slower, accepted=Accepted("meant", "Ada")))
    whose = {"CI_MERGE_REQUEST_SOURCE_PROJECT_ID": str(source)}
    done = job(report_file(**PASSING | {"results": rows}), **whose)
    assert done.code == 0, done.text
    assert gitlab.statuses[0]["status"] == expected
    assert ("accepted by Ada" in gitlab.notes[0]["body"]) == (expected == "success")


def test_outside_of_gitlabs_ci_the_forge_is_named(
    job: Job, gitlab: FakeGitLab, report_file: Write
) -> None:
    nowhere = {"GITLAB_CI": "", "CI_COMMIT_SHA": "", "CI_MERGE_REQUEST_PROJECT_ID": ""}
    asked = ("--pull", "7", "--repository", "octo/models")
    done = job(report_file(), "--forge", "gitlab", *asked, **nowhere)
    assert done.code == 0, done.text
    assert len(gitlab.notes) == 1


def test_a_report_that_cannot_be_read_fails_the_status(
    job: Job, gitlab: FakeGitLab, tmp_path: Path
) -> None:
    (tmp_path / "broken.json").write_text("{")
    assert job(tmp_path / "broken.json").code == 4
    assert gitlab.statuses[0]["status"] == "failed"
    assert gitlab.notes == []


@pytest.mark.parametrize("status", [400, 422])
def test_a_status_that_gitlab_does_not_take_is_reported_and_the_note_is_posted(
    job: Job, gitlab: FakeGitLab, report_file: Write, status: int
) -> None:
    said = '{"message": "Cannot transition status via :run from :success"}'
    gitlab.faults = [Fault("POST", "/statuses/", status=status, body=said, times=9)]
    done = job(report_file())
    assert done.code == 0, done.text
    assert "Cannot transition status" in done.text
    assert len(gitlab.notes) == 1
    assert gitlab.statuses == []


def test_an_answer_that_was_lost_does_not_post_twice(
    job: Job, gitlab: FakeGitLab, report_file: Write
) -> None:
    gitlab.faults = [
        Fault("POST", "/notes$", "after"),
        Fault("POST", "/statuses/", "after", status=409, body='{"message": "in progress"}'),
    ]
    done = job(report_file())
    assert done.code == 0, done.text
    assert len(gitlab.notes) == len(gitlab.statuses) == 1


def test_a_limit_that_asks_for_more_than_the_patience_is_an_error(
    job: Job, gitlab: FakeGitLab, report_file: Write
) -> None:
    gitlab.faults = [limited("POST", "/notes$", 3600, status=429)]
    done = job(report_file(), "--patience", "2s")
    assert done.code == 4
    assert "it would take a wait of 1 h" in done.err
    assert "[gitlab-limit]" in done.err
    assert len(gitlab.statuses) == 1


def test_a_case_that_failed_on_base_alone_does_not_pass_under_strict(
    job: Job, gitlab: FakeGitLab, report_file: Write
) -> None:
    assert job(report_file(**BASE_FAILED), "--strict").code == 0
    assert gitlab.statuses[-1]["status"] == "failed"
