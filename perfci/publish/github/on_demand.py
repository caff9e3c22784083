"""Pure: a comment that asks for a measurement, as its event has it, and what answers it."""

from __future__ import annotations

from dataclasses import dataclass

from perfci.publish.github.answers import CommentAnswer
from perfci.publish.github.comment import Comment
from perfci.publish.github.event import Nothing, decode_event
from perfci.render.escape import Safe, code, escape
from perfci.render.links import ADDRESS
from perfci.render.markdown import MARKER


@dataclass(frozen=True, slots=True)
class Asking:
    """A new comment on the pull request ``number``."""

    comment: Comment
    number: int


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is measured for a comment: the cases of ``selection``, of two whole SHAs."""

    number: int
    comment: int
    base_sha: str
    head_sha: str
    selection: str


@dataclass(frozen=True, slots=True)
class _Linked:
    url: str = ""


@dataclass(frozen=True, slots=True)
class _Issue:
    number: int
    pull_request: _Linked | None = None


@dataclass(frozen=True, slots=True)
class _Event:
    action: str = ""
    issue: _Issue | None = None
    comment: CommentAnswer | None = None


def read_asking(text: str | bytes, name: str) -> Asking | Nothing:
    """Return the comment of an ``issue_comment`` event; UsageError where ``text`` is no event."""
    advice = "Run it in a workflow `on: issue_comment` (GITHUB_EVENT_PATH)."
    event = decode_event(text, name, _Event, advice)
    if event.comment is None or event.issue is None:
        return Nothing("this event has no comment")
    if event.action != "created":
        return Nothing("the comment isn't new")
    if event.issue.pull_request is None or event.issue.number < 1:
        return Nothing("the comment is on no pull request")
    return Asking(event.comment.record(), event.issue.number)


def answer_marker(comment: int) -> str:
    """Return the first line of the answer to a comment."""
    return f"<!-- perfci on demand {comment:d} -->"


def measuring_body(measuring: Measuring, run_url: str) -> str:
    """Return the answer until there are numbers."""
    sides = f"{code(measuring.base_sha[:12])} → {code(measuring.head_sha[:12])}"
    return (
        f"{answer_marker(measuring.comment)}\n### perfci: measuring\n\n"
        f"{sides}, {code('-k ' + measuring.selection)}. "
        f"The numbers will stand here{_linked(', see ', 'the run', run_url)}.\n"
    )


def unmeasured_body(comment: int, why: str, run_url: str) -> str:
    """Return the answer where there will be no numbers."""
    return (
        f"{answer_marker(comment)}\n### 💥 perfci: not measured\n\n"
        f"{escape(why, 600)}{_linked('; see ', 'the run', run_url)}.\n"
    )


def answered(body: str, comment: int, comment_url: str) -> str:
    """Return a report's comment as the answer to the one that asked for it."""
    asked = _linked(" in ", "this comment", comment_url)
    end = f"Asked for{asked}. It sets no check.\n"
    return f"{body.replace(MARKER, answer_marker(comment), 1).rstrip()}\n\n{end}"


def _linked(before: str, text: str, url: str) -> Safe:
    return Safe(f"{before}[{text}]({url})") if ADDRESS.fullmatch(url) else Safe("")
