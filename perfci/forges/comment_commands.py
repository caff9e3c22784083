"""Pure: commands in comments, to accept a regression or to measure, and who may give them.

Anyone may comment. So a comment is data: a command is its first line, read by one expression, and
a name in it is compared with the report's, never run and never made part of a request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from perfci.forges.actions import decode_event
from perfci.forges.base import Comment, NothingToPost, Pull
from perfci.forges.github import CommentAnswer
from perfci.report.clean import Safe, code, escape
from perfci.report.exporters.markdown import MARKER
from perfci.report.links import ADDRESS

USAGE = "/perfci accept CASE METRIC because WHY"
USAGE_ON_DEMAND = "/perfci [-k EXPR]"
_MOST_COMMANDS = 20
"""Commands in one comment."""
_LONGEST_LINE = 1000
"""Characters of a command."""
_ASKS = re.compile(r"/perfci(?: |$)")
"""The beginning of a line that is meant as a command."""
_ACCEPT = re.compile(
    r"/perfci accept +(?P<tick>`?)(?P<case>[^\s`](?:[^`]{0,398}[^\s`])?)(?P=tick)"
    r" +(?P<tick2>`?)(?P<metric>[^\s`]{1,200})(?P=tick2) +because +(?P<because>\S.{0,499})"
)
_MEASURE = re.compile(
    r"/perfci(?: +-k +(?P<quote>[\"'`]?)"
    r"(?P<selection>[^\s\"'`-](?:[^\"'`]{0,398}[^\s\"'`])?)(?P=quote))?"
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
"""The form of GitHub's times, which can be compared as texts."""
_WRITERS = ("admin", "write")
"""The permissions that may write, of the four that GitHub's answer has.

GitHub reports ``maintain`` as ``write``.
"""


@dataclass(frozen=True, slots=True)
class OnDemandRun:
    """A measurement for a comment, of two commits (whole SHAs).

    Its cases are those of ``selection``, or all if that is empty.
    """

    number: int
    comment: int
    base_sha: str
    head_sha: str
    selection: str


@dataclass(frozen=True, slots=True)
class _CommentedIssue:
    number: int
    pull_request: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _IssueCommentEvent:
    action: str = ""
    issue: _CommentedIssue | None = None
    comment: CommentAnswer | None = None


def read_asking(text: str | bytes, name: str) -> Comment | NothingToPost:
    """Return the comment of an ``issue_comment`` event. UsageError where ``text`` is no event."""
    advice = "Run it in a workflow `on: issue_comment` (GITHUB_EVENT_PATH)."
    event = decode_event(text, name, _IssueCommentEvent, advice)
    if event.comment is None or event.issue is None:
        return NothingToPost("this event has no comment")
    if event.action != "created":
        return NothingToPost("the comment isn't new")
    if event.issue.pull_request is None or event.issue.number < 1:
        return NothingToPost("the comment is on no pull request")
    return replace(event.comment.record(), pull=event.issue.number)


def answer_marker(comment: int) -> str:
    """Return the first line of the answer to a comment."""
    return f"<!-- perfci on demand {comment:d} -->"


def measuring_body(measuring: OnDemandRun, run_url: str) -> str:
    """Return the answer's text while the measurement runs."""
    sides = f"{code(measuring.base_sha[:12])} → {code(measuring.head_sha[:12])}"
    chosen = f", {code('-k ' + measuring.selection)}" if measuring.selection else ""
    return (
        f"{answer_marker(measuring.comment)}\n### perfci: measuring\n\n"
        f"{sides}{chosen}. "
        f"The numbers will stand here{_linked(', see ', 'the run', run_url)}.\n"
    )


def unmeasured_body(comment: int, why: str, run_url: str) -> str:
    """Return the answer's text if there will be no numbers."""
    return (
        f"{answer_marker(comment)}\n### 💥 perfci: not measured\n\n"
        f"{escape(why, 600)}{_linked('; see ', 'the run', run_url)}.\n"
    )


def answered(body: str, comment: int, comment_url: str) -> str:
    """Return a report's comment as the answer to the one that asked for it."""
    where = _linked(" in ", "this comment", comment_url)
    end = f"Asked for{where}. It sets no check.\n"
    return f"{body.replace(MARKER, answer_marker(comment), 1).rstrip()}\n\n{end}"


def _linked(before: str, text: str, url: str) -> Safe:
    return Safe(f"{before}[{text}]({url})") if ADDRESS.fullmatch(url) else Safe("")


@dataclass(frozen=True, slots=True)
class AcceptRequest:
    """The command to accept the regression of ``metric`` in ``case``."""

    case: str
    metric: str
    because: str


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """The command to measure the cases of ``selection``, or all if that is empty."""

    selection: str


@dataclass(frozen=True, slots=True)
class UnreadableCommand:
    """A command that can't be read, and why."""

    why: str


def read_commands(body: str) -> tuple[AcceptRequest | MeasureRequest, ...] | UnreadableCommand:
    """Return the commands of a comment. Empty if its first line is no command.

    The first line that is no command ends them. So a quoted command doesn't count, nor does a
    command inside of a code block.
    """
    commands: list[AcceptRequest | MeasureRequest] = []
    for line in body.replace("\r\n", "\n").split("\n"):
        if _ASKS.match(line) is None:
            break
        text = line.rstrip(" ")
        if len(text) > _LONGEST_LINE or len(commands) == _MOST_COMMANDS:
            return UnreadableCommand(
                f"more than {_LONGEST_LINE} characters in a line, or {_MOST_COMMANDS} commands"
            )
        if not text.isprintable():  # bidirectional and invisible characters, too
            return UnreadableCommand("a character in it can't be seen, or isn't text")
        command = _read(text)
        if command is None:
            return UnreadableCommand(f"it is neither `{USAGE}` nor `{USAGE_ON_DEMAND}`")
        commands.append(command)
    return tuple(commands)


def _read(line: str) -> AcceptRequest | MeasureRequest | None:
    accept = _ACCEPT.fullmatch(line)
    if accept is not None:
        return AcceptRequest(accept["case"], accept["metric"], accept["because"])
    measure = _MEASURE.fullmatch(line)
    return MeasureRequest(measure["selection"] or "") if measure is not None else None


def accept_refusal(comment: Comment, pull: Pull, permission: str, measured_at: str) -> str:
    """Return why ``comment`` does not accept on ``pull`` as it is now, or an empty text.

    ``permission`` is what GitHub says of its author. ``measured_at`` is when the numbers of the
    pull request's head were first posted. An earlier comment is about other numbers.
    """
    is_author = comment.author.casefold() == pull.author.casefold()
    reasons = (
        *_author_reasons(comment, permission, "accepts"),
        (
            is_author and not pull.own,
            "the author of a fork's pull request accepts nothing in it",
        ),
        (
            not (_TIME.fullmatch(measured_at) and _TIME.fullmatch(comment.created_at)),
            "nothing of this commit was posted yet; comment again when it was",
        ),
        (
            comment.created_at <= measured_at,
            "it is older than the numbers of this commit; write a new comment",
        ),
    )
    return next((why for holds, why in reasons if holds), "")


def may_write(comment: Comment, permission: str) -> bool:
    """Return whether the author of ``comment`` is a person who may write to the repository."""
    return not comment.bot and bool(comment.author) and permission in _WRITERS


def measure_refusal(comment: Comment, pull: Pull, permission: str) -> str:
    """Return why ``comment`` does not get ``pull`` measured as it is now, or an empty text.

    A comment doesn't hold the head that its author had seen. So nothing may have been pushed to a
    fork since then. GitHub knows only when something was last pushed to the head's repository. A
    commit's own time is not reliable, as its author sets it. On a branch of the repository itself,
    later pushes don't matter: accounts that push there may ask, too.
    """
    dated = _TIME.fullmatch(comment.created_at) and _TIME.fullmatch(pull.pushed_at)
    moved = not dated or pull.pushed_at >= comment.created_at
    reasons = (
        *_author_reasons(comment, permission, "has it measured"),
        (not pull.open, "the pull request is closed"),
        (not pull.source, "the repository of its head is gone"),
        (
            moved and not pull.own,
            "the fork was pushed to since; look at its head, and comment again",
        ),
    )
    return next((why for holds, why in reasons if holds), "")


def _author_reasons(comment: Comment, permission: str, does: str) -> tuple[tuple[bool, str], ...]:
    return (
        (comment.bot or not comment.author, f"only a person {does}"),
        (
            permission not in _WRITERS,
            f"only somebody with write access to this repository {does}",
        ),
        # anyone who may write can change other people's comments, too
        (comment.updated_at != comment.created_at, "it was edited; write a new comment"),
    )
