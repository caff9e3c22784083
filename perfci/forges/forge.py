"""What posting a report needs of a forge, and whether the report's base is the one to compare with.

That is where a pull request left its target, and the commit that a merge group is built on. A
pull request is retargeted without a push, and a run that is started again still has the target
of its event: what was measured then says nothing of the target it has now. The report's word for
its base can be forged like its numbers; this finds wrong wiring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from perfci.forges.github.event import SHA, MergeGroup
from perfci.forges.pull import Pull
from perfci.forges.rest import Refused
from perfci.model.report import Report
from perfci.report.clean import clean_line

if TYPE_CHECKING:
    from perfci.forges.check import CheckContent, Status
    from perfci.forges.github.client import CheckAnswer, StatusAnswer
    from perfci.forges.pull import Comment, Pull
    from perfci.forges.rest import Service
    from perfci.report.annotations import Annotation

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


def caveat_of_base(client: Forge, found: Pull | MergeGroup, report: Report) -> str:
    """Return why the base of ``report``, a `compare`, isn't that of ``found``; nothing where it is.

    What a stored baseline was measured on is no commit of the pull request's history. The head of
    ``report`` has to be known as measured (see ``require_measured``).
    """
    if report.command != "compare":
        return ""
    if isinstance(found, MergeGroup):
        return _caveat_of_group(found, report)
    return _caveat_of_pull(client, found, report)


def _caveat_of_group(group: MergeGroup, report: Report) -> str:
    if not group.base_sha:
        return "with which commit to compare isn't known: the merge group's branch names none"
    base = report.base.sha if report.base else ""
    if base == group.base_sha:
        return ""
    return (
        f"compared with {clean_line(base[:12]) or 'no commit'}, but the merge group is built on "
        f"{group.base_sha[:12]}"
    )


def _caveat_of_pull(client: Forge, pull: Pull, report: Report) -> str:
    base, target = report.base.sha if report.base else "", clean_line(pull.target, 100)
    try:
        left = client.leaves(pull, report.head.sha)
        if left and (base == left or _is_between(client, left, base, pull.target)):
            return ""
    except Refused:
        return f"with which commit of {target} to compare isn't known: the token may not read them"
    there = left[:12] or f"no commit that {client.service.name} knows"
    return (
        f"compared with {clean_line(base[:12]) or 'no commit'}, but the {pull.term.name} leaves "
        f"{target} at {there}"
    )


def _is_between(client: Forge, left: str, base: str, target: str) -> bool:
    """Say whether ``base`` is on the target since ``left``: who compares with its tip may."""
    # only a whole SHA is asked for: what a report says must not become another request
    return (
        SHA.fullmatch(base) is not None
        and client.is_ancestor(base, target)
        and client.is_ancestor(left, base)
    )
