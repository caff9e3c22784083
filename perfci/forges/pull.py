"""Pure: a pull request as it is now, and its comments, of which one is ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from perfci.forges.github.event import PULL_REQUEST, Nothing, Term, Wanted, same_name
from perfci.report.clean import clean_line
from perfci.report.exporters.markdown import MARKER


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request into the branch ``target``.

    ``source`` is the repository of its own branch, empty where that is gone; ``own``: it is the
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
class Several:
    """One branch in several pull requests: a check can't say of which of them it is."""

    head_sha: str
    reason: str


def choose(pulls: Sequence[Pull], wanted: Wanted) -> Pull | Several | Nothing:
    """Return the one of a branch's open ``pulls`` whose head was measured."""
    branch = clean_line(wanted.branch, 200)
    mine = [one for one in pulls if one.open and same_name(one.source, wanted.source)]
    if not mine:
        none = f"no open {wanted.term.name} comes from {branch}"
        known = not wanted.advice  # the event was one's own
        return Nothing(f"{none}: closed or merged meanwhile" if known else none, wanted.advice)
    heads = [one for one in mine if one.head_sha == wanted.head_sha]
    if not heads:
        return Nothing(_moved(branch, wanted.head_sha, mine[0].head_sha))
    if len(heads) > 1:
        numbers = ", ".join(one.reference for one in heads)
        why = f"{branch} is in several {wanted.term.name}s ({numbers}), and a commit has one check"
        return Several(wanted.head_sha, f"{why}: close all but one, or choose by --pull NUMBER")
    return heads[0]


def why_not(pull: Pull, head_sha: str) -> Nothing | None:
    """Return why nothing is posted to ``pull`` about ``head_sha``; None where it may be."""
    named = f"{pull.term.name} {pull.reference}"
    if not pull.open:
        return Nothing(f"{named} is closed")
    if pull.head_sha != head_sha:
        return Nothing(_moved(named, head_sha, pull.head_sha))
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
    """Create a comment, update ``comment``, or leave it; then delete the ``twins``."""

    action: Literal["create", "update", "leave"]
    comment: Comment | None = None
    twins: tuple[Comment, ...] = ()


def decide(comments: Sequence[Comment], author: str, body: str, marker: str = MARKER) -> Decision:
    """Return what makes ``body`` the one comment of ``author`` that begins with ``marker``.

    Author and marker both have to match: anyone can write the marker, and the author writes for
    other tools, too. The oldest stays, where people have seen it and perhaps linked to it.
    """
    ours = sorted(
        (one for one in comments if _is_ours(one, author, marker)), key=lambda one: one.id
    )
    if not ours:
        return Decision("create")
    oldest, *twins = ours
    action: Literal["update", "leave"] = "leave" if _same(oldest.body, body) else "update"
    return Decision(action, oldest, tuple(twins))


def _is_ours(comment: Comment, author: str, marker: str) -> bool:
    by_us = comment.author.casefold() == author.casefold()  # GitHub's names ignore case
    return by_us and comment.body.startswith(marker)


def _same(one: str, other: str) -> bool:
    """A browser's edit turns line ends into CRLF, which changes nothing that is seen."""
    return one.replace("\r\n", "\n").rstrip() == other.replace("\r\n", "\n").rstrip()
