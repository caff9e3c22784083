"""Pure: an issue of perfci's, and how it is known again: by the ids in its first line.

Everything up to the end mark is perfci's and is written anew; what people add below it stays.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

LABEL = "perfci"
_LONGEST = 65_536
MOST_IDS = 3000
"""An issue's text has ``_LONGEST`` characters, and a mark at most 17 an id."""
_BEGIN = "<!-- perfci-changes:"
_END = "<!-- /perfci-changes -->"
_MARK = re.compile(re.escape(_BEGIN) + r"(?P<ids>[0-9A-Za-z_. -]*) -->\n")
_PLAIN = re.compile(r"[0-9A-Za-z_.][0-9A-Za-z_.-]{0,15}")

Close = Literal["", "completed", "not_planned"]


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue as GitHub has it now. ``author`` is empty where the account is gone."""

    number: int
    author: str
    title: str
    body: str
    url: str
    open: bool


@dataclass(frozen=True, slots=True)
class Content:
    """What an issue should say. ``marks`` are its changes' ids; ``close`` says why it is over."""

    marks: tuple[str, ...]
    title: str
    text: str
    close: Close = ""

    @property
    def body(self) -> str:
        """The text between the marks that it is known by."""
        return f"{_BEGIN} {' '.join(self.marks)} -->\n{self.text.strip()}\n{_END}\n"


def mark_of(change_id: str) -> str:
    """Return an id as it may stand in a mark: a hash of one that could end the mark."""
    if _PLAIN.fullmatch(change_id) and "--" not in change_id:
        return change_id
    return hashlib.sha256(change_id.encode("utf-8", "replace")).hexdigest()[:16]


def marks_in(issue: Issue, author: str) -> tuple[str, ...]:
    """Return the marks of an issue of ``author``; none of anybody else's, whatever it says."""
    found = _MARK.match(issue.body.replace("\r\n", "\n"))
    if found is None or issue.author.casefold() != author.casefold():  # GitHub ignores case
        return ()
    return tuple(found["ids"].split())


def rewritten(issue: Issue, content: Content) -> str | None:
    """Return the issue's new text; None where it says that already, or has no room for it."""
    old = issue.body.replace("\r\n", "\n")
    _, end, below = old.partition(_END)
    added = below.strip("\n")
    body = f"{content.body}\n{added}\n" if end and added else content.body
    return None if body.rstrip() == old.rstrip() or len(body) > _LONGEST else body


def ours(issues: Sequence[Issue], author: str) -> dict[str, Issue]:
    """Return each mark with its issue: the oldest, where there should be two."""
    found: dict[str, Issue] = {}
    for issue in sorted(issues, key=lambda one: one.number):
        for mark in marks_in(issue, author):
            found.setdefault(mark, issue)
    return found
