"""One repository of a Forgejo or Gitea (API v1). Every method is one request, or one whole list."""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import quote

from perfci.publish.failures import Missing, Service
from perfci.publish.forgejo.answers import (
    CommentAnswer,
    CommitStatusAnswer,
    ComparisonAnswer,
    PullAnswer,
    UserAnswer,
)
from perfci.publish.github.answers import CommitAnswer, StatusAnswer
from perfci.publish.github.check import NAME, Status
from perfci.publish.github.comment import Comment
from perfci.publish.github.event import same_name
from perfci.publish.github.issue_comments import IssueComments
from perfci.publish.github.pull import Pull
from perfci.publish.http import Pace
from perfci.publish.rest import parse
from perfci.publish.retry import RetryPolicy

SERVICE = Service(
    "Forgejo",
    "GITHUB_API_URL",
    "FORGEJO_TOKEN",
    "https://codeberg.org/api/v1",
    rights="see docs/forges.md",
)


class Client(IssueComments):
    """What perfci asks of one repository."""

    service = SERVICE
    pages = ("limit", "page")

    def __init__(
        self,
        repository: str,
        token: str,
        api_url: str,
        policy: RetryPolicy | None = None,
        pace: Pace | None = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        headers = {"Accept": "application/json", "Authorization": f"token {token}"}
        super().__init__(f"/repos/{quote(repository)}", api_url, headers, policy, pace, sleep, now)

    @property
    def check_runs(self) -> None:
        """Return None: there are commit statuses alone."""
        return

    def pull(self, number: int) -> Pull:
        """Return a pull request as it is now."""
        return self._pull(number).record()

    def _pull(self, number: int) -> PullAnswer:
        return self._get(f"/pulls/{number}", PullAnswer)

    def open_pulls(self, branch: str) -> tuple[Pull, ...]:
        """Return the open pull requests of ``branch``, which is ``owner:branch``."""
        owner, _, name = branch.partition(":")
        found: tuple[PullAnswer, ...] = self._pages(
            "/pulls", tuple[PullAnswer, ...], tuple, state="open"
        )
        return tuple(
            one.record()
            for one in found
            if one.head.ref == name and same_name(one.record().source.partition("/")[0], owner)
        )

    def parents(self, sha: str) -> tuple[str, ...]:
        """Return the parents of a commit; none where the repository hasn't got it."""
        try:
            commit = self._get(f"/git/commits/{quote(sha, safe='')}", CommitAnswer)
        except Missing:
            return ()
        return tuple(one.sha for one in commit.parents)

    def leaves(self, pull: Pull, sha: str) -> str:
        """Return where ``sha``, the head of ``pull`` or a merge of it, leaves the target.

        A merge of the head into the target leaves it at its first parent. Of two commits there is
        no request that names the last one they share.
        """
        found = self._pull(pull.number)
        return found.merge_base if found.head.sha == sha else next(iter(self.parents(sha)), "")

    def is_ancestor(self, one: str, of: str) -> bool:
        """Say whether the commit ``one`` is ``of``, a commit or a branch, or before it."""
        path = f"/compare/{quote(of, safe='')}...{quote(one, safe='')}"
        try:
            return self._get(path, ComparisonAnswer).total_commits == 0
        except Missing:
            return False

    def login(self) -> str:
        """Return the account that the token posts as."""
        answer = self.retry(lambda: self._ask("GET", "/user"))
        return parse(answer.text, UserAnswer, "GET /user", self.service).login

    def comments(self, number: int) -> tuple[Comment, ...]:
        """Return all comments of a pull request, the oldest first: they come without pages."""
        answers = self._get(f"/issues/{number}/comments", tuple[CommentAnswer, ...])
        return tuple(one.record() for one in answers)

    def statuses(self, sha: str) -> tuple[StatusAnswer, ...]:
        """Return a commit's statuses, the newest first."""
        path = f"/commits/{sha}/statuses"
        found: tuple[CommitStatusAnswer, ...] = self._pages(
            path, tuple[CommitStatusAnswer, ...], tuple
        )
        return tuple(one.record() for one in sorted(found, key=lambda one: -one.id))

    def create_status(self, sha: str, status: Status) -> None:
        """Set the status of perfci's name on a commit."""
        request = {"state": status.state, "description": status.description, "context": NAME}
        if status.url:
            request["target_url"] = status.url
        self._write("POST", f"/statuses/{sha}", CommitStatusAnswer, request)
