"""One project of a GitLab. Every method is one request, or one whole list."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from urllib.parse import quote

from perfci.publish.failures import Missing, Service, TooLong
from perfci.publish.github.answers import StatusAnswer
from perfci.publish.github.check import NAME, Status
from perfci.publish.github.comment import Comment
from perfci.publish.github.pull import Pull
from perfci.publish.gitlab.answers import (
    STATES,
    CommitAnswer,
    CommitStatusAnswer,
    MergeRequestAnswer,
    NoteAnswer,
    UserAnswer,
)
from perfci.publish.http import Pace
from perfci.publish.rest import Rest, parse
from perfci.publish.retry import RetryPolicy

_FEW = 10
"""Notes that fit what is read of an answer, each as long as it may be and its signs escaped."""
_ACTION = re.compile(r"^[^\S\n]*(?=/)", re.MULTILINE)
_REFERENCE = re.compile(r"&#(?:33|36|38|126);(?=\d)")
"""One of ``!$&~``, as ``escape`` writes it, before a number. It breaks ``@`` and ``#`` itself."""
SERVICE = Service(
    "GitLab",
    "CI_API_V4_URL",
    "PERFCI_GITLAB_TOKEN",
    "https://gitlab.com/api/v4",
    rights="see docs/forges.md",
)


class Client(Rest):
    """What perfci asks of one project, by its path or its number.

    ``page`` is the project's page, of which a note's address is made.
    """

    service = SERVICE

    def __init__(
        self,
        project: str,
        token: str,
        api_url: str = SERVICE.example,
        policy: RetryPolicy | None = None,
        page: str = "",
        pace: Pace | None = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        headers = {"Accept": "application/json", "PRIVATE-TOKEN": token}
        at = f"/projects/{quote(project, safe='')}"
        super().__init__(at, api_url, headers, policy, pace, sleep, now)
        self._page = page

    @property
    def check_runs(self) -> None:
        """Return None: GitLab has commit statuses alone."""
        return

    def pull(self, number: int) -> Pull:
        """Return a merge request as it is now."""
        return self._get(f"/merge_requests/{number}", MergeRequestAnswer).record()

    def open_pulls(self, branch: str) -> tuple[Pull, ...]:
        """Return the open merge requests of a branch, which forks may have as well."""
        kind = tuple[MergeRequestAnswer, ...]
        found = self._pages("/merge_requests", kind, tuple, state="opened", source_branch=branch)
        return tuple(one.record() for one in found)

    def parents(self, sha: str) -> tuple[str, ...]:
        """Return the parents of a commit; none where the project hasn't got it."""
        commit = self._commit(sha)
        return commit.parent_ids if commit else ()

    def leaves(self, pull: Pull, sha: str) -> str:
        """Return where ``sha`` leaves the target of ``pull``; nothing where that isn't known."""
        return self._merge_base(pull.target, sha)

    def is_ancestor(self, one: str, of: str) -> bool:
        """Say whether the commit ``one`` is ``of``, a commit or a branch, or before it."""
        # a commit that it hasn't got is a bad request for GitLab, like any other mistake
        return self._commit(one) is not None and self._merge_base(one, of) == one

    def _commit(self, sha: str) -> CommitAnswer | None:
        try:
            return self._get(f"/repository/commits/{quote(sha, safe='')}", CommitAnswer)
        except Missing:
            return None

    def _merge_base(self, one: str, other: str) -> str:
        parameters = {"refs[]": (one, other)}
        try:
            return self._get("/repository/merge_base", CommitAnswer, **parameters).id
        except Missing:
            return ""

    def text(self, body: str) -> str:
        """Return a note's text, of which no line is a quick action, such as ``/merge``.

        And no stranger's text a reference, such as ``!12``, which would leave a trace there.

        GitLab does what they say by the token's rights, and has taken lines for them that stand in
        a fence: it didn't always know where a fence of four backticks ends.
        """
        return _REFERENCE.sub("\\g<0>\u200b", _ACTION.sub("\\g<0>\u200b", body))

    def login(self) -> str:
        """Return the account that the token posts as: a project's token has one of its own."""
        answer = self.retry(lambda: self._ask("GET", "/user"))
        return parse(answer.text, UserAnswer, "GET /user", self.service).username

    def comments(self, number: int) -> tuple[Comment, ...]:
        """Return all notes of a merge request but GitLab's own, the oldest first."""
        try:
            notes = self._notes(number, 100)
        except TooLong:  # anybody may leave notes of a million characters
            notes = self._notes(number, _FEW)
        return tuple(one.record(number, self._url(number)) for one in notes if not one.system)

    def _notes(self, number: int, at_once: int) -> tuple[NoteAnswer, ...]:
        order = {"sort": "asc", "order_by": "created_at"}
        path = f"/merge_requests/{number}/notes"
        return self._pages(path, tuple[NoteAnswer, ...], tuple, at_once, **order)

    def create_comment(self, number: int, body: str) -> str:
        """Leave a note, and return its address."""
        path = f"/merge_requests/{number}/notes"
        note = self._write("POST", path, NoteAnswer, {"body": body})
        return note.record(number, self._url(number)).url

    def update_comment(self, comment: Comment, body: str) -> str:
        """Replace a note's text, and return its address. Unsure where somebody deleted it."""
        path = f"/merge_requests/{comment.pull}/notes/{comment.id}"
        self._write("PUT", path, NoteAnswer, {"body": body})
        return comment.url

    def delete_comment(self, comment: Comment) -> None:
        """Delete a note; one that is gone already is as it should be."""
        self._delete(f"/merge_requests/{comment.pull}/notes/{comment.id}")

    def statuses(self, sha: str) -> tuple[StatusAnswer, ...]:
        """Return a commit's statuses of perfci's name, the newest first."""
        path = f"/repository/commits/{sha}/statuses"
        found: tuple[CommitStatusAnswer, ...] = self._pages(
            path, tuple[CommitStatusAnswer, ...], tuple, name=NAME
        )
        return tuple(one.record() for one in sorted(found, key=lambda one: -one.id))

    def create_status(self, sha: str, status: Status) -> None:
        """Set the status of perfci's name on a commit: GitLab puts it into its newest pipeline."""
        request = {
            "state": STATES[status.state],
            "description": status.description,
            "name": NAME,
        }
        if status.url:
            request["target_url"] = status.url
        self._write("POST", f"/statuses/{sha}", CommitStatusAnswer, request)

    def _url(self, number: int) -> str:
        return f"{self._page}/-/merge_requests/{number}" if self._page else ""
