"""One repository of a GitHub. Every method is one request, or one whole list.

Reading is repeated where GitHub fails for a while. Writing never is: a failure may come after the
write took effect, and would leave two comments. Who writes gets ``Unsure`` and looks what is there
(see ``posting``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from perfci.errors import OutsideError, UsageError
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
from perfci.publish.github.comment import Comment
from perfci.publish.github.failures import Missing, Refused, Unsure, judge
from perfci.publish.github.pull import Pull
from perfci.publish.http import Answer, Connection, NoAnswer, Pace, address_of, redirected
from perfci.publish.retry import RetryPolicy, retry
from perfci.render.clean import clean_line
from perfci.units import format_duration

T = TypeVar("T")
GUIDE = Pace(requests=0.25, writes=1.0)
"""What GitHub's guide asks for."""
_LEAST = 10.0
"""What one request may take, in s, at the least: a slow GitHub isn't broken."""
_PAGE = 100
_MOST_PAGES = 300
_MOST_BYTES = 64 << 20
"""A page of a hundred comments, each as long as GitHub lets it be, has less than half of it."""
_LATER = "Run it again; https://www.githubstatus.com may know."
_MOST_HOPS = 3
_MOVED = {301, 307, 308}
"""The redirects of which the same request is to be sent again; nothing was done yet."""


def policy_of(most_wait_s: float) -> RetryPolicy:
    """Return the policy of ``--patience``."""
    return RetryPolicy(most=most_wait_s, timeout=max(most_wait_s, _LEAST), option="--patience")


class Client:
    """What perfci asks of one repository. A write raises ``Unsure`` or ``Refused``."""

    def __init__(
        self,
        repository: str,
        token: str,
        api_url: str = "https://api.github.com",
        policy: RetryPolicy | None = None,
        pace: Pace = GUIDE,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        parts = address_of(api_url)
        if parts is None:
            raise UsageError(
                "bad-address",
                f"GITHUB_API_URL is {api_url!r}, no address",
                "Give it as in https://api.github.com",
            )
        self._api = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"token {token}",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        self._policy = policy or policy_of(120.0)
        self._connection = Connection(self._policy.timeout, _MOST_BYTES, pace, sleep)
        self._at = f"/repos/{quote(repository)}"
        self._sleep = sleep
        self._now = now

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def retry(self, do: Callable[[], T], before_again: Callable[[], object] = lambda: None) -> T:
        """Return what ``do`` returns, which looks at what is there, and writes what is missing."""
        return retry(do, self._policy, self._sleep, before_again)

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
        return self._write("POST", path, CommentAnswer, {"body": body}).html_url

    def update_comment(self, comment: Comment, body: str) -> str:
        """Replace a comment's text, and return its address. Unsure where somebody deleted it."""
        path = f"/issues/comments/{comment.id}"
        return self._write("PATCH", path, CommentAnswer, {"body": body}).html_url

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

    def _get(self, path: str, kind: type[T], **parameters: str) -> T:
        """Read, again and again where GitHub fails: reading changes nothing."""
        where = f"{self._at}{path}"
        answer = self.retry(lambda: self._ask("GET", where, parameters=parameters))
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

    def _write(self, verb: str, path: str, kind: type[T], body: dict[str, Any]) -> T:
        where = f"{self._at}{path}"
        try:
            answer = self._ask(verb, where, body)
        except Missing as failure:
            # how GitHub says "no" where the token may not even look; but what is to be changed was
            # there, and somebody deleted it: what is there has to be looked at anew
            meant = Refused if verb == "POST" else Unsure
            raise meant(failure.slug, failure.message, failure.advice) from failure
        return parse(answer.text, kind, f"{verb} {where}")

    def _ask(
        self,
        verb: str,
        path: str,
        body: dict[str, Any] | None = None,
        parameters: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request, once, to where GitHub has it."""
        request = f"{verb} {path}"
        headers, content = self._headers, None
        if body is not None:
            headers = headers | {"Content-Type": "application/json"}
            content = json.dumps(body).encode()
        url = f"{self._api}{path}"
        if parameters:
            url += f"?{urlencode(sorted(parameters.items()))}"
        for _ in range(_MOST_HOPS):
            answer = self._send(request, verb, url, headers, content)
            if answer.status not in _MOVED or "location" not in answer.headers:
                break
            url = _moved(request, url, answer.headers["location"])
        else:
            raise OutsideError("moved", f"{request} is sent in circles", "Correct GITHUB_API_URL.")
        if answer.status == 202 and verb == "GET":
            raise Unsure("github-busy", f"{request} was answered with 202: not ready yet", _LATER)
        judge(answer, request, self._now())
        return answer

    def _send(
        self, request: str, verb: str, url: str, headers: dict[str, str], content: bytes | None
    ) -> Answer:
        try:
            answer = self._connection.send(verb, url, headers, content)
        except NoAnswer as failure:
            if failure.spent:
                what = f"{request} was not answered within {format_duration(failure.spent)}"
                raise Unsure("no-answer", what, _LATER, spent=failure.spent) from failure
            raise Unsure(
                "no-answer",
                f"{request} got no answer: {failure.why}",
                "Is GITHUB_API_URL right, and may this runner reach it?",
            ) from failure
        if not answer.whole:
            raise OutsideError(
                "strange-answer",
                f"{request} was answered with more than {_MOST_BYTES >> 20} MiB",
                "Is GITHUB_API_URL the address of GitHub's API? A proxy may have answered.",
            )
        return answer


def _moved(request: str, url: str, location: str) -> str:
    """Return where a redirect leads: another server never gets the token."""
    address = redirected(url, location)
    if address is None:
        raise OutsideError(
            "moved",
            f"{request} was sent elsewhere: {clean_line(location)}",
            "Correct GITHUB_API_URL.",
        )
    return address


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
