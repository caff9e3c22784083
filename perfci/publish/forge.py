"""What posting a report needs of a forge: the clients of GitHub, GitLab and Forgejo have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from perfci.publish.failures import Service
    from perfci.publish.github.answers import CheckAnswer, StatusAnswer
    from perfci.publish.github.check import CheckContent, Status
    from perfci.publish.github.comment import Comment
    from perfci.publish.github.pull import Pull
    from perfci.render.annotations import Annotation

T = TypeVar("T")


class Forge(Protocol):
    """One project. Each method is one request, or one whole list.

    Reading is repeated where the forge fails for a while; a write raises ``Unsure`` or ``Refused``.
    """

    service: Service

    @property
    def check_runs(self) -> CheckRuns | None:
        """What sets check runs; None where the forge has commit statuses alone."""

    def close(self) -> None:
        """Close the connection."""

    def retry(self, do: Callable[[], T]) -> T:
        """Return what ``do`` returns, which looks at what is there, and writes what is missing."""

    def pull(self, number: int) -> Pull:
        """Return a pull request as it is now."""

    def open_pulls(self, branch: str) -> tuple[Pull, ...]:
        """Return the open pull requests of ``branch``, as ``Wanted`` names it."""

    def parents(self, sha: str) -> tuple[str, ...]:
        """Return the parents of a commit; none where the repository hasn't got it."""

    def leaves(self, pull: Pull, sha: str) -> str:
        """Return where ``sha`` leaves the target of ``pull``; nothing where that isn't known."""

    def is_ancestor(self, one: str, of: str) -> bool:
        """Say whether the commit ``one`` is ``of``, a commit or a branch, or before it."""

    def login(self) -> str:
        """Return the account that the token posts as."""

    def comments(self, number: int) -> tuple[Comment, ...]:
        """Return all comments of a pull request, the oldest first."""

    def text(self, body: str) -> str:
        """Return a comment's text as this forge is to get it: it may read more into one."""

    def create_comment(self, number: int, body: str) -> str:
        """Comment, and return the comment's address."""

    def update_comment(self, comment: Comment, body: str) -> str:
        """Replace a comment's text, and return its address. Unsure where somebody deleted it."""

    def delete_comment(self, comment: Comment) -> None:
        """Delete a comment; one that is gone already is as it should be."""

    def statuses(self, sha: str) -> tuple[StatusAnswer, ...]:
        """Return a commit's statuses, the newest first."""

    def create_status(self, sha: str, status: Status) -> None:
        """Set the status of perfci's name on a commit."""


class CheckRuns(Protocol):
    """GitHub's check runs, which have annotations, a neutral conclusion, and a time.

    By that time a comment can accept what it says, where GitHub says what its author may.
    """

    def permission(self, login: str) -> str:
        """Return what an account may do here: ``admin``, ``write``, ``read`` or ``none``."""

    def checks(self, sha: str) -> tuple[CheckAnswer, ...]:
        """Return every check run of perfci's name on a commit."""

    def create_check(
        self, sha: str, check: CheckContent, lines: Sequence[Annotation]
    ) -> CheckAnswer:
        """Create a finished check run with its first annotations."""

    def annotate(self, number: int, check: CheckContent, lines: Sequence[Annotation]) -> None:
        """Add annotations to a check run: those that are there are kept."""
