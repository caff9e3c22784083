"""Pure: the parts of a Forgejo's answers that are read, strictly, and the records made of them."""

from __future__ import annotations

from dataclasses import dataclass

from perfci.publish.github.answers import PullAnswer as GitHubPullAnswer
from perfci.publish.github.answers import StatusAnswer
from perfci.publish.github.comment import Comment


@dataclass(frozen=True, slots=True)
class PullAnswer(GitHubPullAnswer):
    """A pull request, as GitHub's; and where it leaves its target."""

    merge_base: str = ""


@dataclass(frozen=True, slots=True)
class UserAnswer:
    """An account."""

    login: str


@dataclass(frozen=True, slots=True)
class CommentAnswer:
    """A comment."""

    id: int
    html_url: str
    user: UserAnswer | None = None
    body: str = ""
    created_at: str = ""
    updated_at: str = ""

    def record(self) -> Comment:
        """Return the record."""
        author = self.user.login if self.user else ""
        return Comment(
            self.id,
            author,
            self.body,
            self.html_url,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


@dataclass(frozen=True, slots=True)
class ComparisonAnswer:
    """The commits that one side has and the other hasn't."""

    total_commits: int


@dataclass(frozen=True, slots=True)
class CommitStatusAnswer:
    """A commit status; its state is called status."""

    id: int
    context: str
    status: str
    description: str | None = None
    target_url: str | None = None

    def record(self) -> StatusAnswer:
        """Return the record."""
        return StatusAnswer(self.context, self.status, self.description, self.target_url)
