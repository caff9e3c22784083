"""One comment of ours is left, whoever else wrote what."""

from __future__ import annotations

import pytest

from perfci.forges.base import Comment, Decision, User, decide
from perfci.report.exporters.markdown import MARKER

BOT = "github-actions[bot]"
BODY = f"{MARKER}\n**perfci: pass**\n"


def comment(number: int, body: str = BODY, author: str = BOT) -> Comment:
    return Comment(number, f"https://github.com/c/{number}", User(author), body)


def test_without_a_comment_one_is_created() -> None:
    assert decide([], BOT, BODY) == Decision("create")


@pytest.mark.parametrize(
    "other",
    [
        comment(1, author="stranger"),
        comment(1, author=""),
        comment(1, "Of another tool's"),
        comment(1, f"> {BODY}"),
        comment(1, f"\n{BODY}"),
    ],
)
def test_a_comment_that_lacks_author_or_marker_is_not_ours(other: Comment) -> None:
    assert decide([other], BOT, BODY) == Decision("create")


def test_a_comment_of_ours_that_says_something_else_is_updated() -> None:
    old = comment(5, f"{MARKER}\n**perfci: fail**\n")
    assert decide([comment(4, "hello"), old], BOT, BODY) == Decision("update", old)


@pytest.mark.parametrize("body", [BODY, BODY.rstrip(), BODY.replace("\n", "\r\n")])
def test_a_comment_that_says_the_same_is_left(body: str) -> None:
    old = comment(5, body)
    assert decide([old], BOT, BODY) == Decision("leave", old)


def test_the_oldest_stays_and_its_twins_are_deleted() -> None:
    first, second, third = comment(5), comment(6, f"{MARKER} old"), comment(9)
    decision = decide([third, comment(7, author="x"), first, second], BOT, BODY)
    assert decision == Decision("leave", first, (second, third))


def test_the_case_of_an_authors_name_does_not_matter() -> None:
    old = comment(5, author="GitHub-Actions[bot]")
    assert decide([old], BOT, BODY) == Decision("leave", old)
