"""One repository of a GitHub, by PyGithub. Every method is one request, or one whole list.

Reading is repeated where GitHub fails for a while. Writing never is: PyGithub asks through
``connection``, which repeats nothing, because a failure may come after the write took effect, and
would leave two comments. Who writes gets ``Unsure`` and looks what is there (see ``posting``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast
from urllib.parse import quote

import requests
from github import Auth, Github

from perfci.errors import OutsideError
from perfci.publish.github.annotations import Annotation
from perfci.publish.github.answers import (
    CheckAnswer,
    ChecksAnswer,
    CommentAnswer,
    CommitAnswer,
    ComparisonAnswer,
    PullAnswer,
    StatusAnswer,
    parse,
)
from perfci.publish.github.check import NAME, CheckContent, Status
from perfci.publish.github.connection import Connection, require_address
from perfci.publish.github.deciding import Comment
from perfci.publish.github.failing import Answer, Missing, Refused, Unsure, judge
from perfci.publish.github.patience import USUAL, Patience, Waiting
from perfci.publish.github.pull import Pull
from perfci.render.clean import clean_line

T = TypeVar("T")
_PAGE = 100
_MOST_PAGES = 300
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


class Client:
    """What perfci asks of one repository. A write raises ``Unsure`` or ``Refused``."""

    def __init__(
        self,
        repository: str,
        token: str,
        api_url: str = "https://api.github.com",
        patience: Patience = USUAL,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        require_address(api_url)
        self._github = Github(
            auth=Auth.Token(token),
            base_url=api_url.rstrip("/"),
            user_agent="perfci",
            seconds_between_requests=patience.between_requests,
            seconds_between_writes=patience.between_writes,
        )
        self._connection = Connection(api_url, patience.for_one)
        self._at = f"/repos/{quote(repository)}"
        self._patience = patience
        self._sleep = sleep
        self._now = now

    def close(self) -> None:
        """Close the connection."""
        self._github.close()
        self._connection.close()

    def waiting(self) -> Waiting:
        """Return the waits for one thing that is to be done."""
        return Waiting(self._patience, self._sleep)

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

    def merge_base(self, one: str, other: str) -> str:
        """Return where two branches or commits part; nothing where GitHub finds no such commit."""
        path = f"/compare/{quote(one, safe='')}...{quote(other, safe='')}"
        try:
            return self._get(path, ComparisonAnswer, per_page="1").merge_base_commit.sha
        except Missing:
            return ""

    def comments(self, number: int) -> tuple[Comment, ...]:
        """Return all comments of a pull request, the oldest first."""
        path = f"/issues/{number}/comments"
        return tuple(one.record() for one in self._pages(path, tuple[CommentAnswer, ...], tuple))

    def create_comment(self, number: int, body: str) -> str:
        """Comment, and return the comment's address."""
        path = f"/issues/{number}/comments"
        return self._post(path, CommentAnswer, {"body": body}).html_url

    def update_comment(self, comment: Comment, body: str) -> str:
        """Replace a comment's text, and return its address. Unsure where somebody deleted it."""
        path = f"/issues/comments/{comment.id}"
        return self._patch(path, CommentAnswer, {"body": body}).html_url

    def delete_comment(self, comment: Comment) -> None:
        """Delete a comment; one that is gone already is as it should be."""
        try:
            self._ask("DELETE", f"{self._at}/issues/comments/{comment.id}")
        except Missing:
            return

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
        return self._post("/check-runs", CheckAnswer, request)

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
        self._post(f"/statuses/{sha}", StatusAnswer, request)

    def _get(self, path: str, kind: type[T], **parameters: str) -> T:
        """Read, again and again where GitHub fails: reading changes nothing."""
        waiting = self.waiting()
        where = f"{self._at}{path}"
        while True:
            try:
                answer = self._ask("GET", where, parameters=parameters)
            except Unsure as failure:
                waiting.before_next(failure)
            else:
                return parse(answer.text, kind, f"GET {where}")

    def _pages(
        self, path: str, kind: type[T], items: Callable[[T], tuple[Any, ...]], **parameters: str
    ) -> tuple[Any, ...]:
        found: list[Any] = []
        for page in range(1, _MOST_PAGES + 1):
            numbers = {"per_page": str(_PAGE), "page": str(page)}
            more = items(self._get(path, kind, **parameters, **numbers))
            found += more
            if len(more) < _PAGE:
                return tuple(found)
        raise OutsideError(
            "endless-list",
            f"{self._at}{path} has more than {_MOST_PAGES * _PAGE} entries",
            "Start a new pull request: nobody can read this one any more.",
        )

    def _post(self, path: str, kind: type[T], body: dict[str, Any]) -> T:
        where = f"{self._at}{path}"
        try:
            answer = self._ask("POST", where, body)
        except Missing as failure:  # how GitHub says "no" where the token may not even look
            raise Refused(failure.slug, failure.message, failure.advice) from failure
        return parse(answer.text, kind, f"POST {where}")

    def _patch(self, path: str, kind: type[T], body: dict[str, Any]) -> T:
        where = f"{self._at}{path}"
        try:
            answer = self._ask("PATCH", where, body)
        except Missing as failure:  # somebody deleted it: what is there has to be looked at anew
            raise Unsure(failure.slug, failure.message, failure.advice) from failure
        return parse(answer.text, kind, f"PATCH {where}")

    def _ask(
        self,
        verb: str,
        path: str,
        body: dict[str, Any] | None = None,
        parameters: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request, once."""
        request = f"{verb} {path}"
        asking = self._connection.asking(request)
        try:
            status, headers, text = self._github.requester.requestJson(
                verb, path, parameters, dict(_HEADERS), body, cast("Any", asking)
            )
        except requests.RequestException as error:
            raise Unsure(
                "no-answer",
                f"{request} got no answer: {type(error).__name__}",
                "Is GITHUB_API_URL right, and may this runner reach it?",
            ) from error
        except (
            RuntimeError,
            ValueError,
        ) as error:  # PyGithub's of a redirect elsewhere, or nowhere
            raise OutsideError(
                "moved",
                f"{request} was sent elsewhere: {clean_line(str(error))}",
                "Correct GITHUB_API_URL.",
            ) from error
        answer = Answer(status, headers, text)
        judge(answer, request, self._now())
        return answer


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
