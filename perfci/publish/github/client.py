"""One repository of a GitHub. Every method is one request, or one whole list."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from perfci.publish.failures import Missing, Service
from perfci.publish.github.answers import (
    CheckAnswer,
    ChecksAnswer,
    CommentAnswer,
    CommitAnswer,
    ComparisonAnswer,
    PermissionAnswer,
    PullAnswer,
    StatusAnswer,
)
from perfci.publish.github.check import NAME, CheckContent, Status
from perfci.publish.github.comment import Comment
from perfci.publish.github.issue_comments import IssueComments
from perfci.publish.github.pull import Pull
from perfci.publish.http import Pace
from perfci.publish.retry import RetryPolicy
from perfci.render.annotations import Annotation

BOT = "github-actions[bot]"
_LOGIN = re.compile(r"[A-Za-z0-9_-]{1,100}")
SERVICE = Service(
    "GitHub",
    "GITHUB_API_URL",
    "GITHUB_TOKEN",
    "https://api.github.com",
    later="Run it again; https://www.githubstatus.com may know.",
)


class Client(IssueComments):
    """What perfci asks of one repository. A write raises ``Unsure`` or ``Refused``."""

    service = SERVICE

    def __init__(
        self,
        repository: str,
        token: str,
        api_url: str = SERVICE.example,
        policy: RetryPolicy | None = None,
        pace: Pace | None = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"token {token}",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        super().__init__(f"/repos/{quote(repository)}", api_url, headers, policy, pace, sleep, now)

    @property
    def check_runs(self) -> Client:
        """Return this client: it sets them."""
        return self

    def pull(self, number: int) -> Pull:
        """Return a pull request as it is now."""
        return self._get(f"/pulls/{number}", PullAnswer).record()

    def open_pulls(self, branch: str) -> tuple[Pull, ...]:
        """Return the open pull requests of ``branch``, which is ``owner:branch``."""
        path = "/pulls"
        answers = self._pages(path, tuple[PullAnswer, ...], tuple, state="open", head=branch)
        return tuple(one.record() for one in answers)

    def parents(self, sha: str) -> tuple[str, ...]:
        """Return the parents of a commit; none where the repository hasn't got it."""
        try:
            commit = self._get(f"/git/commits/{sha}", CommitAnswer)
        except Missing:
            return ()
        return tuple(one.sha for one in commit.parents)

    def leaves(self, pull: Pull, sha: str) -> str:
        """Return where ``sha`` leaves the target of ``pull``; nothing where that isn't known."""
        return self._merge_base(pull.target, sha)

    def is_ancestor(self, one: str, of: str) -> bool:
        """Say whether the commit ``one`` is ``of``, a commit or a branch, or before it."""
        return self._merge_base(one, of) == one

    def _merge_base(self, one: str, other: str) -> str:
        """Return where two branches or commits part; nothing where GitHub finds no such commit."""
        path = f"/compare/{quote(one, safe='')}...{quote(other, safe='')}"
        try:
            return self._get(path, ComparisonAnswer, per_page="1").merge_base_commit.sha
        except Missing:
            return ""

    def login(self) -> str:
        """Return the author of a workflow's comments: its token may not ask who it is."""
        return BOT

    def comments(self, number: int) -> tuple[Comment, ...]:
        """Return all comments of a pull request, the oldest first."""
        path = f"/issues/{number}/comments"
        return tuple(one.record() for one in self._pages(path, tuple[CommentAnswer, ...], tuple))

    def permission(self, login: str) -> str:
        """Return what an account may do here: ``admin``, ``write``, ``read`` or ``none``."""
        if _LOGIN.fullmatch(login) is None:  # what it isn't must not become another request
            return "none"
        try:
            return self._get(f"/collaborators/{login}/permission", PermissionAnswer).permission
        except Missing:
            return "none"

    def react(self, comment_id: int, content: str) -> None:
        """React to a comment. GitHub keeps one reaction of a kind, however often it is asked."""
        path = f"{self._at}/issues/comments/{comment_id}/reactions"
        self._ask("POST", path, {"content": content})

    def checks(self, sha: str) -> tuple[CheckAnswer, ...]:
        """Return every check run of perfci's name on a commit."""
        path = f"/commits/{sha}/check-runs"
        return self._pages(
            path, ChecksAnswer, lambda page: page.check_runs, check_name=NAME, filter="all"
        )

    def create_check(
        self, sha: str, check: CheckContent, lines: Sequence[Annotation]
    ) -> CheckAnswer:
        """Create a finished check run with its first annotations."""
        request: dict[str, Any] = {
            "name": NAME,
            "head_sha": sha,
            "external_id": check.identity,
            "status": "completed",
            "conclusion": check.conclusion,
            "output": _output(check, lines),
        }
        if check.url:
            request["details_url"] = check.url
        return self._write("POST", "/check-runs", CheckAnswer, request)

    def annotate(self, number: int, check: CheckContent, lines: Sequence[Annotation]) -> None:
        """Add annotations to a check run: GitHub keeps those that are there."""
        request = {"output": _output(check, lines)}
        self._ask("PATCH", f"{self._at}/check-runs/{number}", request)

    def statuses(self, sha: str) -> tuple[StatusAnswer, ...]:
        """Return a commit's statuses, the newest first."""
        return self._pages(f"/commits/{sha}/statuses", tuple[StatusAnswer, ...], tuple)

    def create_status(self, sha: str, status: Status) -> None:
        """Set the status of perfci's name on a commit."""
        request: dict[str, Any] = {
            "state": status.state,
            "description": status.description,
            "context": NAME,
        }
        if status.url:
            request["target_url"] = status.url
        self._write("POST", f"/statuses/{sha}", StatusAnswer, request)


def _output(check: CheckContent, lines: Sequence[Annotation]) -> dict[str, Any]:
    output: dict[str, Any] = {"title": check.title, "summary": check.summary}
    if lines:
        output["annotations"] = [
            {
                "path": one.path,
                "start_line": one.line,
                "end_line": one.line,
                "annotation_level": one.level,
                "title": one.title,
                "message": one.message,
            }
            for one in lines
        ]
    return output
