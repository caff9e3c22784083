"""Pure: what to do with the comments that are there, so that one of ours is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from perfci.render.markdown import MARKER


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
