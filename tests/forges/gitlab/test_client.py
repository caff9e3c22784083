"""GitLab's client, and what only GitLab does."""

from __future__ import annotations

import html
import re

import pytest

from perfci.errors import OutsideError, UsageError
from perfci.forges.gitlab import GitLabClient, is_of_a_fork, read_job
from perfci.forges.http import Pace
from perfci.forges.posting import leave_comment
from perfci.report.clean import escape
from perfci.report.exporters.markdown import MARKER
from perfci.report.exporters.markdown import render as render_markdown
from tests.forges.fake import Fault
from tests.forges.github.conftest import HEAD
from tests.forges.gitlab.server import BOT, FakeGitLab
from tests.report.examples import hostile_report


@pytest.mark.parametrize(
    "body",
    [
        f"{MARKER}\n/merge\n",
        f"{MARKER}\n  /close\r\n\t/approve\n",
        f"{MARKER}\n````text\n```\n/merge\n````\n",
        render_markdown(hostile_report("/merge")),
    ],
    ids=["plain", "indented", "in a fence", "hostile report"],
)
def test_no_line_of_a_note_is_a_quick_action(
    client: GitLabClient, gitlab: FakeGitLab, body: str
) -> None:
    leave_comment(client, client.pull(7), client.login(), body)
    (note,) = gitlab.notes
    assert re.search(r"(?m)^\s*/", note["body"]) is None
    assert note["body"].replace("\u200b", "") == body.replace("\u200b", "")
    leave_comment(client, client.pull(7), client.login(), body)
    assert len(gitlab.wrote()) == 1


def test_no_strangers_text_is_a_reference(client: GitLabClient, gitlab: FakeGitLab) -> None:
    body = f"{MARKER}\n{escape('see !12, &3, $4, ~5, #6 and @all')}\n"
    leave_comment(client, client.pull(7), BOT, body)
    shown = html.unescape(gitlab.notes[0]["body"])
    assert re.search(r"[!&$~#]\d|@\w", shown) is None
    assert "see !12, &3, $4, ~5, #6 and @all" in shown.replace("\u200b", "")


def test_a_note_of_another_merge_request_or_of_gitlab_itself_is_none_of_its_comments(
    client: GitLabClient, gitlab: FakeGitLab
) -> None:
    gitlab.note("of another", number=8)
    gitlab.note("changed the description", system=True)
    mine = gitlab.note("mine")
    assert [one.id for one in client.comments(7)] == [mine["id"]]


def test_pages_are_followed_though_they_are_shorter_than_was_asked_for(
    client: GitLabClient, gitlab: FakeGitLab
) -> None:
    for number in range(250):
        gitlab.note(str(number), "somebody")["hidden"] = number < 99
    assert len(client.comments(7)) == 151


def test_the_longest_note_is_taken_and_what_is_longer_is_said(
    client: GitLabClient, gitlab: FakeGitLab
) -> None:
    client.create_comment(7, "x" * 1_000_000)
    with pytest.raises(OutsideError, match="too long"):
        client.create_comment(7, "x" * 1_000_001)
    assert len(gitlab.notes) == 1


def test_a_scope_that_is_lacking_is_said(client: GitLabClient, gitlab: FakeGitLab) -> None:
    said = '{"error": "insufficient_scope", "error_description": "needs api"}'
    gitlab.faults = [Fault("POST", "/notes$", status=403, body=said, times=9)]
    left = leave_comment(client, client.pull(7), BOT, f"{MARKER}\n")
    assert left.kind == "refused"
    assert "insufficient_scope" in left.text


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({"CI_MERGE_REQUEST_IID": "1"}, True),
        (
            {
                "CI_MERGE_REQUEST_IID": "1",
                "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "7",
                "CI_MERGE_REQUEST_PROJECT_ID": "7",
            },
            False,
        ),
        (
            {
                "CI_MERGE_REQUEST_IID": "1",
                "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "8",
                "CI_MERGE_REQUEST_PROJECT_ID": "7",
            },
            True,
        ),
    ],
)
def test_a_merge_request_that_does_not_say_whose_it_is_is_a_forks(
    variables: dict[str, str], expected: bool
) -> None:
    assert is_of_a_fork(variables) is expected


@pytest.mark.parametrize("number", ["0", "-1", "²", "7;8", "9" * 12])
def test_a_number_that_is_none_is_refused(number: str) -> None:
    with pytest.raises(UsageError, match="no merge request's number"):
        read_job({"CI_COMMIT_SHA": HEAD, "CI_MERGE_REQUEST_IID": number})


def test_notes_as_long_as_they_may_be_keep_nobody_from_being_told(
    client: GitLabClient, gitlab: FakeGitLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfci.forges.rest._MOST_BYTES", 1 << 20)
    client = GitLabClient("42", client._token, gitlab.api, pace=Pace())
    for _ in range(90):
        gitlab.note("<" * 60_000, "stranger")
    mine = gitlab.note(f"{MARKER}\nold")
    left = leave_comment(client, client.pull(7), BOT, f"{MARKER}\nnew")
    assert left.kind == "posted"
    assert mine["body"].endswith("new")
    client.close()


def test_of_a_strangers_note_only_a_part_is_kept(client: GitLabClient, gitlab: FakeGitLab) -> None:
    gitlab.note("x" * 1_000_000, "stranger")
    assert [len(one.body) for one in client.comments(7)] == [100_000]
