"""Comment and check on a GitHub that fails, limits and forbids: each is there once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from perfci.errors import OutsideError, UsageError
from perfci.finding import Explanation
from perfci.forges.actions import NothingToPost, PostTarget
from perfci.forges.github import CheckContent, GitHubClient, Refused
from perfci.forges.posting import (
    MeasuredHead,
    check_content,
    find_head,
    leave_comment,
    require_measured,
    set_check,
)
from perfci.report.exporters.markdown import MARKER
from tests.forges.github import server
from tests.forges.github.conftest import HEAD, MERGE, OLDER, report_of
from tests.forges.github.server import BOT, REPOSITORY, TOKEN, FakeGitHub, Fault, dropped, limited
from tests.report.examples import passing_report

BODY = f"{MARKER}\n<!-- perfci head={HEAD} -->\n**perfci: pass**\n"
OLD = f"{MARKER}\n**perfci: fail**\n"
PULL = MeasuredHead(HEAD, 7, "main")
COMMENTS = "/issues/7/comments$"
NO_ANSWERS = [Fault("POST", "", "after"), dropped("POST", "", "after")]


def bodies(github: FakeGitHub) -> list[str]:
    return [one["body"] for one in github.comments]


def content(lines: int = 1) -> CheckContent:
    explained = tuple(
        Explanation("c", "recompiles", "recompile", "shape", "lib/a.py", line)
        for line in range(1, lines + 1)
    )
    report = report_of(explanations=explained, failures=())
    return check_content([report], BODY, PULL, "", "12-1", strict=False)


def lines_posted(github: FakeGitHub) -> list[int]:
    return [one["start_line"] for kept in github.annotations.values() for one in kept]


def test_the_first_report_is_a_new_comment(github: FakeGitHub, client: GitHubClient) -> None:
    outcome = leave_comment(client, PULL, BOT, BODY)
    assert outcome.startswith("comment created: https://github.com/")
    assert bodies(github) == [BODY]


def test_the_next_report_updates_it_and_an_equal_one_writes_nothing(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.comment(OLD)
    assert "updated" in leave_comment(client, PULL, BOT, BODY)
    assert "up to date" in leave_comment(client, PULL, BOT, BODY)
    assert bodies(github) == [BODY]
    assert [method for method, _ in github.wrote()] == ["PATCH"]


def test_our_comment_is_found_behind_two_hundred_others(
    github: FakeGitHub, client: GitHubClient
) -> None:
    for number in range(230):
        github.comment(f"chat {number}", author="someone")
    ours = github.comment(OLD)
    leave_comment(client, PULL, BOT, BODY)
    assert ours["body"] == BODY
    assert len(github.comments) == 231


def test_a_strangers_comment_with_our_marker_is_not_touched(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.comment(OLD, author="stranger")
    github.comment(OLD, author=None)
    leave_comment(client, PULL, BOT, BODY)
    assert bodies(github) == [OLD, OLD, BODY]


def test_twin_comments_are_deleted(github: FakeGitHub, client: GitHubClient) -> None:
    for _ in range(3):
        github.comment(OLD)
    first = github.comments[0]["id"]
    assert "2 twins deleted" in leave_comment(client, PULL, BOT, BODY)
    assert [one["id"] for one in github.comments] == [first]
    assert bodies(github) == [BODY]


@pytest.mark.parametrize("fault", NO_ANSWERS)
def test_a_comment_whose_answer_was_lost_is_not_written_twice(
    github: FakeGitHub, client: GitHubClient, fault: Fault
) -> None:
    github.faults = [replace(fault, times=1)]
    leave_comment(client, PULL, BOT, BODY)
    assert bodies(github) == [BODY]
    assert len(github.wrote()) == 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_one_comment_is_left_whatever_write_fails_and_when(
    github: FakeGitHub, client: GitHubClient, method: str, when: str
) -> None:
    if method != "POST":
        github.comment(OLD)
        github.comment(OLD)
    github.faults = [Fault(method, "", when, times=2)]
    leave_comment(client, PULL, BOT, BODY)
    assert bodies(github) == [BODY]


def test_a_failing_list_is_asked_for_again(
    github: FakeGitHub, client: GitHubClient, slept: list[float]
) -> None:
    github.comment(OLD)
    github.faults = [Fault("GET", COMMENTS, times=2), dropped("GET", "/pulls/7")]
    leave_comment(client, PULL, BOT, BODY)
    assert bodies(github) == [BODY]
    assert slept == [1.0, 2.0, 1.0]


def test_a_github_that_stays_broken_is_an_error_after_some_tries(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.faults = [Fault("POST", COMMENTS, times=99)]
    with pytest.raises(OutsideError, match=r"502.*, 5 times over") as caught:
        leave_comment(client, PULL, BOT, BODY)
    assert caught.value.exit_code == 4
    assert len(github.wrote()) == 5


@pytest.mark.parametrize("status", [403, 429])
def test_a_rate_limit_is_waited_for_as_long_as_it_says(
    github: FakeGitHub, client: GitHubClient, slept: list[float], status: int
) -> None:
    github.faults = [limited("POST", COMMENTS, 30, status), limited("GET", COMMENTS, 20, status)]
    leave_comment(client, PULL, BOT, BODY)
    assert slept == [20.0, 30.0]
    assert bodies(github) == [BODY]


def test_a_rate_limit_of_an_hour_is_not_slept_through(
    github: FakeGitHub, client: GitHubClient, slept: list[float]
) -> None:
    github.faults = [limited("POST", COMMENTS, 3600)]
    with pytest.raises(OutsideError, match="1 h 0 min"):
        leave_comment(client, PULL, BOT, BODY)
    assert slept == []
    assert github.comments == []


def test_a_token_that_may_not_comment_is_refused(github: FakeGitHub, client: GitHubClient) -> None:
    github.rights.clear()
    with pytest.raises(Refused, match="Resource not accessible by integration"):
        leave_comment(client, PULL, BOT, BODY)


def test_a_pull_request_that_the_token_may_not_see_refuses_a_comment(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.faults = [Fault("POST", COMMENTS, status=404, body='{"message": "Not Found"}')]
    with pytest.raises(Refused):
        leave_comment(client, PULL, BOT, BODY)


def test_a_push_before_the_write_means_that_nothing_is_written(
    github: FakeGitHub, client: GitHubClient
) -> None:
    def push(operation: str) -> None:
        if operation == "issues/list-comments":
            github.pulls[7].sha = OLDER

    github.comment(OLD)
    github.before = push
    with pytest.raises(NothingToPost, match="newer head"):
        leave_comment(client, PULL, BOT, BODY)
    assert github.wrote() == []


def test_a_comment_that_somebody_deletes_meanwhile_is_written_again(
    github: FakeGitHub, client: GitHubClient
) -> None:
    def delete(operation: str) -> None:
        if operation == "issues/update-comment":
            github.comments.clear()

    github.comment(OLD)
    github.before = delete
    leave_comment(client, PULL, BOT, BODY)
    assert bodies(github) == [BODY]


def test_a_comment_too_long_for_github_is_an_error(
    github: FakeGitHub, client: GitHubClient
) -> None:
    with pytest.raises(OutsideError, match="422 Validation Failed: body is too long"):
        leave_comment(client, PULL, BOT, MARKER + "x" * 65_536)


def test_the_check_has_conclusion_summary_and_lines(
    github: FakeGitHub, client: GitHubClient
) -> None:
    outcome = set_check(client, HEAD, content())
    (check,) = github.checks
    assert (check["name"], check["head_sha"]) == ("perfci", HEAD)
    assert (check["status"], check["conclusion"]) == ("completed", "failure")
    assert check["output"]["title"].startswith("fail: ")
    assert check["output"]["summary"] == BODY
    assert lines_posted(github) == [1]
    assert outcome == f"check is failure: {check['html_url']}"


@pytest.mark.parametrize("when", ["before", "after"])
def test_no_check_is_there_twice_after_a_failure(
    github: FakeGitHub, client: GitHubClient, when: str
) -> None:
    github.faults = [Fault("POST", "check-runs", when)]
    set_check(client, HEAD, content(50))
    assert len(github.checks) == 1
    assert lines_posted(github) == list(range(1, 51))


def test_the_same_posting_again_leaves_the_check(github: FakeGitHub, client: GitHubClient) -> None:
    set_check(client, HEAD, content())
    set_check(client, HEAD, content())
    assert len(github.wrote()) == 1


def test_a_new_measurement_of_one_head_is_a_new_check(
    github: FakeGitHub, client: GitHubClient
) -> None:
    set_check(client, HEAD, content())
    set_check(client, HEAD, replace(content(), identity="perfci/1 13-1"))
    assert len(github.checks) == 2


def test_without_any_right_the_check_is_refused(github: FakeGitHub, client: GitHubClient) -> None:
    github.rights.clear()
    with pytest.raises(Refused):
        set_check(client, HEAD, content())
    assert github.checks == []


def test_a_forks_pull_request_is_found_by_branch_and_head(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.pulls = {
        6: server.Pull(6, HEAD, source="other/models"),
        7: server.Pull(7, HEAD, source="stranger/models"),
        8: server.Pull(8, HEAD, "other", source="stranger/models"),
    }
    wanted = PostTarget(HEAD, branch="stranger:feature", source="stranger/models")
    assert find_head(client, wanted) == PULL
    for moved in (replace(github.pulls[7], sha=OLDER), replace(github.pulls[7], state="closed")):
        github.pulls[7] = moved
        with pytest.raises(NothingToPost):
            find_head(client, wanted)


def test_a_report_of_the_head_or_of_its_merge_is_measured(
    github: FakeGitHub, client: GitHubClient
) -> None:
    require_measured(client, [HEAD, MERGE], PULL)
    for other in (OLDER, "", "HEAD"):
        with pytest.raises(UsageError, match="or a merge of it"):
            require_measured(client, [HEAD, other], PULL)


@pytest.mark.parametrize("parents", [(HEAD,), (HEAD, OLDER), (OLDER, HEAD, "e" * 40)], ids=len)
def test_a_commit_on_top_of_the_head_is_no_merge_of_it(
    github: FakeGitHub, client: GitHubClient, parents: tuple[str, ...]
) -> None:
    stacked = "f" * 40
    github.commits[stacked] = parents
    with pytest.raises(UsageError, match="or a merge of it"):
        require_measured(client, [stacked], PULL)


def test_a_commit_on_top_of_a_merge_group_is_the_next_groups(
    github: FakeGitHub, client: GitHubClient
) -> None:
    require_measured(client, [HEAD], MeasuredHead(HEAD))
    with pytest.raises(UsageError, match="not of"):
        require_measured(client, [MERGE], MeasuredHead(HEAD))
    assert github.requests == []


def test_a_wrong_token_is_a_usage_error_that_does_not_tell_it(github: FakeGitHub) -> None:
    client = GitHubClient(REPOSITORY, "secret-and-wrong", github.url)
    with pytest.raises(UsageError) as caught:
        client.pull(7)
    client.close()
    assert caught.value.slug == "bad-token"
    assert "secret-and-wrong" not in str(caught.value)


def test_a_repository_that_is_not_there_is_an_error(github: FakeGitHub) -> None:
    client = GitHubClient("octo/other", TOKEN, github.url)
    with pytest.raises(OutsideError, match="404 Not Found"):
        client.pull(7)
    client.close()


def test_an_address_that_answers_something_else_is_an_error(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.faults = [Fault("GET", "/pulls/7", status=200, body="<html>log in</html>")]
    with pytest.raises(OutsideError, match="GitHub never gives"):
        client.pull(7)


@pytest.mark.parametrize("address", ["", "api.github.com", "ftp://x", "http://x:y", "https://"])
def test_an_address_that_is_none_is_a_usage_error(address: str) -> None:
    with pytest.raises(UsageError, match="GITHUB_API_URL"):
        GitHubClient(REPOSITORY, TOKEN, address).pull(7)


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    """A fake whose violations are looked at by the test itself."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    fake = FakeGitHub()
    yield fake
    fake.close()


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/issues/7/comments", {"text": "x"}, "'body' is a required property"),
        ("/issues/7/comments", {"body": "x", "more": 1}, "knows no field more"),
        ("/check-runs", {"name": "x", "head_sha": HEAD, "conclusion": "fine"}, "is not one of"),
        ("/comments", {"body": "x"}, "GitHub has no POST"),
    ],
)
def test_the_fake_refuses_what_github_would(
    strict: FakeGitHub, path: str, body: dict[str, object], why: str
) -> None:
    client = GitHubClient(REPOSITORY, TOKEN, strict.url)
    with pytest.raises(OutsideError):
        client._write("POST", path, server.Fault, body)
    client.close()
    assert any(why in violation for violation in strict.violations)


def test_the_fake_notices_an_answer_that_github_would_not_give(strict: FakeGitHub) -> None:
    strict.comment("x")["html_url"] = None
    client = GitHubClient(REPOSITORY, TOKEN, strict.url)
    with pytest.raises(OutsideError):
        client.comments(7)
    client.close()
    assert any("None is not of type 'string'" in violation for violation in strict.violations)


def test_beside_a_job_of_its_name_no_check_is_a_pass(
    github: FakeGitHub, client: GitHubClient
) -> None:
    passing = check_content([passing_report()], BODY, PULL, "", "12-1", strict=False)
    assert passing.conclusion == "success"
    set_check(client, HEAD, replace(passing, identity="ca395085-040a-526b-2ce8-bdc85f692774"))
    assert set_check(client, HEAD, passing).startswith("check is failure")
    said = "a job called `perfci` is on this commit and is not a verdict; "
    assert github.checks[-1]["output"]["title"].startswith(said)


def test_of_a_branch_in_several_pull_requests_nobody_can_tell_whose_report_it_is(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.pulls = {7: server.Pull(7, HEAD), 8: server.Pull(8, HEAD, target="release")}
    with pytest.raises(NothingToPost, match=r"\(#7, #8\)"):
        find_head(client, PostTarget(HEAD, branch="octo:feature", source=REPOSITORY))
