"""Pure: the parts of GitLab's answers that are read, strictly, and the records made of them."""

from __future__ import annotations

from dataclasses import dataclass

from perfci.publish.github.answers import StatusAnswer
from perfci.publish.github.comment import Comment
from perfci.publish.github.event import MERGE_REQUEST
from perfci.publish.github.pull import Pull

STATES = {"success": "success", "failure": "failed"}
"""A commit status's states, as GitLab calls what perfci sets."""
_MOST = 100_000
"""What is kept of a note: more than perfci writes, less than fills the memory."""


@dataclass(frozen=True, slots=True)
class UserAnswer:
    """An account."""

    username: str


@dataclass(frozen=True, slots=True)
class MergeRequestAnswer:
    """A merge request, of a list or alone; a source that was deleted has no id."""

    iid: int
    state: str
    sha: str | None
    target_branch: str
    target_project_id: int
    source_project_id: int | None = None
    author: UserAnswer | None = None

    def record(self) -> Pull:
        """Return the record."""
        return Pull(
            self.iid,
            self.sha or "",
            str(self.source_project_id or ""),
            self.state == "opened",
            self.target_branch,
            self.author.username if self.author else "",
            own=self.source_project_id == self.target_project_id,
            term=MERGE_REQUEST,
        )


@dataclass(frozen=True, slots=True)
class NoteAnswer:
    """A note; GitLab's own ("changed the description") are notes, too."""

    id: int
    body: str
    author: UserAnswer | None = None
    system: bool = False
    created_at: str = ""
    updated_at: str = ""

    def record(self, number: int, url: str) -> Comment:
        """Return the record of a note on the merge request ``number``, whose page is ``url``."""
        author = self.author.username if self.author else ""
        return Comment(
            self.id,
            author,
            self.body[:_MOST],
            f"{url}#note_{self.id}" if url else "",
            number,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


@dataclass(frozen=True, slots=True)
class CommitAnswer:
    """A commit."""

    id: str
    parent_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitStatusAnswer:
    """A commit status; a job of a pipeline is one, too."""

    id: int
    name: str
    status: str
    description: str | None = None
    target_url: str | None = None

    def record(self) -> StatusAnswer:
        """Return the record, in the words that all forges share."""
        shared = {theirs: ours for ours, theirs in STATES.items()}
        state = shared.get(self.status, self.status)
        return StatusAnswer(self.name, state, self.description, self.target_url)
