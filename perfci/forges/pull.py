"""Pure: what a report may be posted to (pull requests, merge groups), and comments there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from perfci.errors import UsageError
from perfci.report.clean import clean_line
from perfci.report.exporters.markdown import MARKER

SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A whole SHA-1 or SHA-256."""


@dataclass(frozen=True, slots=True)
class Term:
    """The forge's name of a pull request, and the sign before its number."""

    name: str
    sign: str


PULL_REQUEST = Term("pull request", "#")
MERGE_REQUEST = Term("merge request", "!")


@dataclass(frozen=True, slots=True)
class PostTarget:
    """The pull request that a report may be posted to.

    ``number`` is 0 where the forge has to be asked for the pull request of ``branch``
    (``owner:branch``, on GitLab the branch alone) in the repository ``source``. ``head_sha`` is the
    commit that was measured, empty where whatever the pull request's head is now is meant.
    ``own``: the event says that the head is a branch of the repository itself, not a fork's.
    ``term`` is what it is called there, and ``advice`` what to do where ``branch`` has none.
    """

    number: int = 0
    head_sha: str = ""
    branch: str = ""
    source: str = ""
    own: bool = False
    term: Term = PULL_REQUEST
    advice: str = ""


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """A commit that a merge queue made of the one before it, ``base_sha``, and what is to go in.

    It is no pull request's head, and never moves. ``base_sha`` is empty where the event doesn't
    say it.
    """

    head_sha: str
    base_sha: str = ""


@dataclass(frozen=True, slots=True)
class NothingToPost:
    """The reason why there is nothing to post to, which is no error, and what to do about it."""

    reason: str
    advice: str = ""

    @property
    def text(self) -> str:
        """Both on one line."""
        return f"{self.reason}. {self.advice}" if self.advice else self.reason


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request into the branch ``target``.

    ``source`` is the repository of its own branch, empty where that is gone. ``own``: it is the
    one that the pull request is in. ``author`` is empty where the account is gone. ``pushed_at``:
    when anything was last pushed to ``source``, in GitHub's own time. ``term`` is what the forge
    calls it.
    """

    number: int
    head_sha: str
    source: str
    open: bool
    target: str
    author: str = ""
    own: bool = False
    pushed_at: str = ""
    term: Term = PULL_REQUEST

    @property
    def reference(self) -> str:
        """Its number as the forge writes it."""
        return f"{self.term.sign}{self.number}"


@dataclass(frozen=True, slots=True)
class AmbiguousPull:
    """One branch in several pull requests: a check can't say of which of them it is."""

    head_sha: str
    reason: str


def choose(pulls: Sequence[Pull], wanted: PostTarget) -> Pull | AmbiguousPull | NothingToPost:
    """Return the one of a branch's open ``pulls`` whose head was measured."""
    branch = clean_line(wanted.branch, 200)
    mine = [pull for pull in pulls if pull.open and same_name(pull.source, wanted.source)]
    if not mine:
        none = f"no open {wanted.term.name} comes from {branch}"
        known = not wanted.advice  # the event was one's own
        return NothingToPost(
            f"{none}: closed or merged meanwhile" if known else none, wanted.advice
        )
    heads = [pull for pull in mine if pull.head_sha == wanted.head_sha]
    if not heads:
        return NothingToPost(_moved(branch, wanted.head_sha, mine[0].head_sha))
    if len(heads) > 1:
        numbers = ", ".join(pull.reference for pull in heads)
        why = f"{branch} is in several {wanted.term.name}s ({numbers}), and a commit has one check"
        return AmbiguousPull(
            wanted.head_sha, f"{why}: close all but one, or choose by --pull NUMBER"
        )
    return heads[0]


def post_refusal(pull: Pull, head_sha: str) -> NothingToPost | None:
    """Return why nothing is posted to ``pull`` about ``head_sha``, or None where it may be."""
    named = f"{pull.term.name} {pull.reference}"
    if not pull.open:
        return NothingToPost(f"{named} is closed")
    if pull.head_sha != head_sha:
        return NothingToPost(_moved(named, head_sha, pull.head_sha))
    return None


def _moved(what: str, measured: str, now: str) -> str:
    return f"{what} has a newer head: {measured[:12]} was measured, {now[:12]} is there now"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on the pull request ``pull``. ``author`` is empty where the account is gone.

    ``bot``: an App wrote it. Both times are GitHub's, as ISO 8601 in UTC.
    """

    id: int
    author: str
    body: str
    url: str
    pull: int = 0
    bot: bool = False
    created_at: str = ""
    updated_at: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Create a comment, update ``comment``, or leave it, then delete the ``twins``."""

    action: Literal["create", "update", "leave"]
    comment: Comment | None = None
    twins: tuple[Comment, ...] = ()


def decide(comments: Sequence[Comment], author: str, body: str, marker: str = MARKER) -> Decision:
    """Return what makes ``body`` the one comment of ``author`` that begins with ``marker``.

    Author and marker both have to match: anyone can write the marker, and the author writes for
    other tools, too. The oldest stays, where people have seen it and perhaps linked to it.
    """
    ours = sorted(
        (comment for comment in comments if _is_ours(comment, author, marker)),
        key=lambda comment: comment.id,
    )
    if not ours:
        return Decision("create")
    oldest, *twins = ours
    action: Literal["update", "leave"] = "leave" if _same(oldest.body, body) else "update"
    return Decision(action, oldest, tuple(twins))


def _is_ours(comment: Comment, author: str, marker: str) -> bool:
    by_us = comment.author.casefold() == author.casefold()  # GitHub's names ignore case
    return by_us and comment.body.startswith(marker)


def _same(old: str, new: str) -> bool:
    """A browser's edit turns line ends into CRLF, which changes nothing that is seen."""
    return old.replace("\r\n", "\n").rstrip() == new.replace("\r\n", "\n").rstrip()


def full_sha(text: str, name: str) -> str:
    """Return ``text``, a commit's whole SHA. UsageError on anything else."""
    if SHA.fullmatch(text) is None:
        raise UsageError(
            "bad-sha",
            f"{name}: {clean_line(text, 80)!r} is no commit's SHA",
            "Give all its 40 hexadecimal digits: git rev-parse HEAD",
        )
    return text


def same_name(first: str, second: str) -> bool:
    """Say whether two names are one repository's: GitHub's ignore case."""
    return first.casefold() == second.casefold()
