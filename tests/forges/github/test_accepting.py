"""What counts of a comment `/perfci accept …`: a maintainer's, unedited, on these numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci.forges.comment_commands import AcceptRequest, UnreadableCommand, read_commands
from perfci.model.report import Comparison
from perfci.verdict.decision import decide
from perfci.verdict.row_status import adjust
from tests.builders.project import Project
from tests.forges.github.conftest import HEAD, OLDER, PASSING, Comment
from tests.forges.github.server import REPOSITORY, FakeGitHub, Fault
from tests.verdict.shards import POLICY, paired

(SLOWER,) = adjust([paired("a[8]", 1.3)], POLICY)
ACCEPT = "/perfci accept a[8] latency_p50 because masks | cost @octo\n### time"
Report = Callable[..., Path]


def failing(*more: Comparison) -> dict[str, object]:
    """What makes a report one in which ``more`` rows are."""
    rows = (*PASSING["results"], *more)
    return PASSING | {"results": rows, "verdict": decide(rows, (), POLICY)}


@pytest.fixture
def slower(report_file: Report) -> Path:
    """A report that one row fails."""
    return report_file(**failing(SLOWER))


@pytest.fixture
def posted(comment: Comment, github: FakeGitHub, slower: Path) -> Path:
    """The same, whose failure was posted on the pull request of the fork ``stranger``."""
    github.members |= {"Ada": "admin", "Ben": "write", "Cleo": "read", "stranger": "write"}
    assert comment(slower).code == 0
    assert github.checks[-1]["conclusion"] == "failure"
    return slower


@pytest.mark.parametrize("who", ["Ada", "Ben"])
def test_a_maintainers_comment_turns_its_row_and_the_check(
    comment: Comment, github: FakeGitHub, posted: Path, who: str
) -> None:
    github.comment(ACCEPT, who)
    done = comment(posted)
    assert done.code == 0, done.text
    assert [one["conclusion"] for one in github.checks] == ["failure", "success"]
    body = github.comments[0]["body"]
    assert f"accepted by &#64;&#8203;{who}: masks &#124; cost" in body
    assert f"@{who}" not in body
    assert "@octo" not in body
    assert "\n### time" not in body
    assert "1 accepted regression" in github.checks[-1]["output"]["title"]


def test_without_its_comment_a_row_is_no_longer_accepted(
    comment: Comment, github: FakeGitHub, posted: Path
) -> None:
    one = github.comment(ACCEPT, "Ada")
    comment(posted)
    github.comments.remove(one)
    comment(posted, GITHUB_RUN_ATTEMPT="2")
    assert [one["conclusion"] for one in github.checks] == ["failure", "success", "failure"]


@pytest.mark.parametrize(
    ("who", "said"),
    [
        ("Cleo", "only somebody with write access"),
        ("nobody", "only somebody with write access"),
        ("..", "only somebody with write access"),
        ("stranger", "the author of a fork's pull request"),
        ("STRANGER", "only somebody with write access"),
        ("github-actions[bot]", "only a person accepts"),
        ("a[bot]", "only a person accepts"),
        (None, "only a person accepts"),
    ],
)
def test_of_anybody_else_it_accepts_nothing(
    comment: Comment, github: FakeGitHub, posted: Path, who: str | None, said: str
) -> None:
    github.comment(ACCEPT, who)
    done = comment(posted)
    assert done.code == 0, done.text
    assert said in done.err
    assert github.checks[-1]["conclusion"] == "failure"


def test_the_author_of_a_branch_of_the_repository_may_as_by_a_table(
    comment: Comment, github: FakeGitHub, posted: Path
) -> None:
    github.pulls[7].source = REPOSITORY
    github.comment(ACCEPT, "stranger")
    done = comment(posted, "--pull", 7, "--head-sha", HEAD)
    assert github.checks[-1]["conclusion"] == "success", done.text


@pytest.mark.parametrize("asked", ["permission", "check-runs"])
def test_a_token_that_may_not_ask_accepts_nothing_and_posts_all_the_same(
    comment: Comment, github: FakeGitHub, posted: Path, asked: str
) -> None:
    github.comment(ACCEPT, "nobody")
    github.comments[0]["body"] += "older"
    no = json.dumps({"message": "Resource not accessible by integration"})
    github.faults.append(Fault("GET", asked, status=403, body=no))
    done = comment(posted)
    assert done.code == 0, done.text
    assert "no command is read, because the token may not" in done.err
    assert "comment updated" in done.out


def test_an_edited_comment_accepts_nothing(
    comment: Comment, github: FakeGitHub, posted: Path
) -> None:
    github.comment("looks good", "Ada")
    github.comments[-1] |= {"body": ACCEPT, "updated_at": github.clock()}
    assert "it was edited" in comment(posted).err
    assert github.checks[-1]["conclusion"] == "failure"


def test_a_comment_on_other_numbers_accepts_nothing(
    comment: Comment, github: FakeGitHub, slower: Path, report_file: Report
) -> None:
    github.members["Ada"] = "admin"
    github.comment(ACCEPT, "Ada")
    assert "nothing of this commit was posted yet" in comment(slower).err
    assert "it is older than the numbers of this commit" in comment(slower).err
    github.comment(ACCEPT, "Ada")
    comment(slower)
    assert [one["conclusion"] for one in github.checks] == ["failure", "success"]
    github.commits |= {OLDER: (HEAD,)}
    github.pulls[7].sha = OLDER  # a push after it
    newer = report_file(OLDER, **failing(SLOWER))
    for _ in range(2):
        comment(newer, "--pull", 7, "--head-sha", OLDER)
        assert github.checks[-1]["head_sha"] == OLDER
        assert github.checks[-1]["conclusion"] == "failure"


def test_a_check_that_a_stranger_set_dates_no_numbers(
    comment: Comment, github: FakeGitHub, slower: Path
) -> None:
    github.members["Ada"] = "admin"
    comment(slower)
    (check,) = github.checks
    check["external_id"] = "perfci/1 pull=8 own=failure run=1-1 " + "0" * 24
    github.comment(ACCEPT, "Ada")
    assert "nothing of this commit was posted yet" in comment(slower).err


def test_it_accepts_no_other_row_and_one_that_is_not_there_is_named(
    comment: Comment, github: FakeGitHub, posted: Path
) -> None:
    github.comment("/perfci accept a latency because so", "Ada")
    comment(posted)
    assert github.checks[-1]["conclusion"] == "failure"
    assert "which was not compared; did you mean" in github.comments[0]["body"]


def test_a_threshold_of_the_default_branch_is_accepted_too(
    comment: Comment, github: FakeGitHub, project: Project, report_file: Report
) -> None:
    """The row regressed by the configuration here alone."""
    project.write("pyproject.toml", '[tool.perfci.metrics.latency_p50]\nthreshold = "1%"\n')
    (row,) = adjust([paired("a[8]", 1.03)], POLICY)
    assert row.status != "regressed"
    report = report_file(**failing(row))
    github.members["Ada"] = "admin"
    comment(report)
    assert github.checks[-1]["conclusion"] == "failure"
    github.comment(ACCEPT, "Ada")
    done = comment(report)  # at 1 %, other rows are undecided
    assert github.checks[-1]["conclusion"] == "neutral", done.text
    assert "accepted by" in github.comments[0]["body"]


def test_a_part_of_a_measurement_is_not_accepted(
    comment: Comment, github: FakeGitHub, report_file: Report
) -> None:
    part = report_file(**failing(SLOWER) | {"missing": ("2/2",)})
    github.members["Ada"] = "admin"
    for _ in range(2):
        comment(part)
        github.comment(ACCEPT, "Ada")
    assert github.checks[-1]["conclusion"] == "failure"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("/perfci accept a m because b", [("a", "m", "b")]),
        ("/perfci accept `a[x=1, y]` `m[k]` because b c\r\nthanks", [("a[x=1, y]", "m[k]", "b c")]),
        (
            "/perfci accept a m because b\n/perfci accept c d because e",
            [("a", "m", "b"), ("c", "d", "e")],
        ),
        ("/perfci accept $(id);`x` m because b", None),
        ("/perfci accept a m because", None),
        ("/perfci accept a m because b\u202e", None),
        ("/perfci accept a\u200b m because b", None),
        ("/perfci accept a m because b\x1b[2J", None),
        ("/perfci accept " + "a" * 65_000, None),
        ("/perfci accept a m because b\n" * 21, None),
        ("/perfci accept", None),
        ("/perfcinate accept a m because b", []),
        (" /perfci accept a m because b", []),
        ("> /perfci accept a m because b", []),
        ("```\n/perfci accept a m because b\n```", []),
        ("thanks\n/perfci accept a m because b", []),
        ("", []),
        ("a" * 65_536, []),
    ],
)
def test_a_command_is_read_strictly(body: str, expected: list[tuple[str, str, str]] | None) -> None:
    read = read_commands(body)
    if expected is None:
        assert isinstance(read, UnreadableCommand)
    else:
        assert read == tuple(AcceptRequest(*one) for one in expected)


PIECES = st.one_of(
    st.sampled_from(["/perfci", "accept", "because", " ", "`", "\n", "\r\n", "a[8]", "\u202e"]),
    st.text(max_size=8),
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_whatever_a_comment_says_what_is_read_of_it_is_one_line_of_text(body: str) -> None:
    read = read_commands(body)
    assert bool(read) <= body.startswith("/perfci")
    for one in () if isinstance(read, UnreadableCommand) else read:
        for text in astuple(one):
            assert text.isprintable()
            assert text.strip(" ") == text
            assert text in body
