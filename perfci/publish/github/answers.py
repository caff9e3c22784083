"""Pure: the parts of GitHub's answers that are read, strictly, and the records made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perfci.publish.github.comment import Comment
from perfci.publish.github.event import same_name
from perfci.publish.github.issue import Issue
from perfci.publish.github.pull import Pull


@dataclass(frozen=True, slots=True)
class _User:
    login: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class _Repository:
    full_name: str
    pushed_at: str | None = None


@dataclass(frozen=True, slots=True)
class _Head:
    sha: str
    repo: _Repository | None = None
    ref: str = ""


@dataclass(frozen=True, slots=True)
class _Target:
    ref: str
    repo: _Repository | None = None


@dataclass(frozen=True, slots=True)
class PullAnswer:
    """A pull request, of a list or alone."""

    number: int
    state: str
    head: _Head
    base: _Target
    user: _User | None = None

    def record(self) -> Pull:
        """Return the record; a deleted fork leaves no repository."""
        source = self.head.repo.full_name if self.head.repo else ""
        here = self.base.repo.full_name if self.base.repo else ""
        return Pull(
            self.number,
            self.head.sha,
            source,
            self.state == "open",
            self.base.ref,
            self.user.login if self.user else "",
            own=bool(source) and same_name(source, here),
            pushed_at=(self.head.repo.pushed_at or "") if self.head.repo else "",
        )


@dataclass(frozen=True, slots=True)
class CommentAnswer:
    """A comment; the account of its author may be gone."""

    id: int
    html_url: str
    user: _User | None = None
    body: str | None = None
    created_at: str = ""
    updated_at: str = ""

    def record(self) -> Comment:
        """Return the record."""
        author = self.user.login if self.user else ""
        return Comment(
            self.id,
            author,
            self.body or "",
            self.html_url,
            bot=self.user is None or self.user.type != "User",
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """What an account may do in the repository."""

    permission: str


@dataclass(frozen=True, slots=True)
class IssueAnswer:
    """An issue of a list, or one that was written; GitHub's lists hold pull requests, too."""

    number: int
    html_url: str
    state: str
    title: str = ""
    user: _User | None = None
    body: str | None = None
    pull_request: dict[str, Any] | None = None

    def record(self) -> Issue:
        """Return the record."""
        author = self.user.login if self.user else ""
        body = self.body or ""
        return Issue(self.number, author, self.title, body, self.html_url, self.state == "open")


@dataclass(frozen=True, slots=True)
class _Output:
    annotations_count: int = 0


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """A check run."""

    id: int
    output: _Output
    external_id: str | None = None
    conclusion: str | None = None
    html_url: str | None = None
    completed_at: str | None = None


@dataclass(frozen=True, slots=True)
class ChecksAnswer:
    """A page of a commit's check runs."""

    check_runs: tuple[CheckAnswer, ...]


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """A commit status."""

    context: str
    state: str
    description: str | None = None
    target_url: str | None = None


@dataclass(frozen=True, slots=True)
class _Commit:
    sha: str


@dataclass(frozen=True, slots=True)
class CommitAnswer:
    """A commit of the repository."""

    parents: tuple[_Commit, ...]


@dataclass(frozen=True, slots=True)
class ComparisonAnswer:
    """Two commits beside each other: where their histories part."""

    merge_base_commit: _Commit
