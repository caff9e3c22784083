"""One repository of a GitHub: each public method is one request, or one whole list.

Reading is repeated while GitHub fails. Writing never is: a failure may come after the write took
effect, and a repeat would leave two comments. The caller of a write gets ``Unsure``, and looks at
what is there (see ``retry``). So the waits are decided here, and not by urllib3's ``Retry``, which
would send a write again, and knows neither GitHub's rate limits nor a limit of all waits.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import msgspec
import requests
from requests.exceptions import InvalidSchema, InvalidURL, MissingSchema

from perfci.errors import OutsideError, UsageError
from perfci.forges.actions import Head
from perfci.report.clean import clean_line
from perfci.units import format_duration
from perfci.version import VERSION

_REPOSITORY = re.compile(r"[A-Za-z0-9_-]+/(?!\.{1,2}$)[A-Za-z0-9._-]+")
"""``OWNER/NAME``. A name of one or two dots would change a request's path."""
_TOKEN = re.compile(r"[!-~]+")
"""Printable ASCII without blanks."""
T = TypeVar("T")
Level = Literal["failure", "warning", "notice"]
Conclusion = Literal["success", "failure", "neutral"]
CHECK = "perfci"
"""The name of the check."""
_LONGEST_SILENCE_S = 15.0
"""The longest wait for the next byte of an answer, in s."""
_TRIES = 5
_PAGE = 100
"""Entries that are requested per page."""
_SECONDS = re.compile(r"[0-9]{1,12}")
"""Digits alone. ``isdigit`` takes more, such as ``²``."""
_LIMITED = re.compile(r"rate limit|abuse detection|wait a few minutes|retry your request again")
"""GitHub's words where it limits the rate."""
_SECONDARY_WAIT = 60.0
"""The wait that GitHub's guide asks for where a rate limit names no time, in s."""
_LATER = "Run it again; https://www.githubstatus.com may know."


class Unsure(OutsideError):
    """The request may have taken effect, or came too soon. Look again, then repeat it if needed.

    ``wait`` is the wait in s that GitHub asks for, None if it names no time.
    """

    def __init__(
        self, slug: str, message: str, advice: str = "", wait: float | None = None
    ) -> None:
        super().__init__(slug, message, advice)
        self.wait = wait


class Refused(OutsideError):
    """The token may not do this. Nothing was written."""


class Missing(OutsideError):
    """The thing requested isn't there, or the token may not even know that it is."""


@dataclass(frozen=True, slots=True)
class User:
    """An account."""

    login: str


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on a pull request. The account may be gone."""

    id: int
    html_url: str
    user: User | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True)
class _Branch:
    ref: str


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request into the branch ``base``."""

    number: int
    state: str
    head: Head
    base: _Branch


@dataclass(frozen=True, slots=True)
class Check:
    """A check run."""

    id: int
    external_id: str | None = None
    html_url: str | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """A message at a line of ``path``, which is relative to the repository."""

    path: str
    start_line: int
    end_line: int
    annotation_level: Level
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckContent:
    """The contents of a check run. ``identity`` tells this posting from others."""

    identity: str
    conclusion: Conclusion
    title: str
    summary: str
    annotations: tuple[Annotation, ...] = ()
    url: str = ""


@dataclass(frozen=True, slots=True)
class _Checks:
    check_runs: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class _CommitSha:
    sha: str


@dataclass(frozen=True, slots=True)
class _Commit:
    parents: tuple[_CommitSha, ...]


class GitHubClient:
    """A repository of GitHub. A write raises ``Unsure`` or ``Refused``.

    ``most_wait_s`` bounds all waits for one thing together.
    """

    def __init__(
        self,
        repository: str,
        token: str,
        api_url: str,
        most_wait_s: float = 120.0,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._api = api_url.rstrip("/")
        self._token = token
        self._session = requests.Session()
        self._session.auth = lambda request: request  # else a .netrc's password replaces the token
        self._session.headers.update(
            {
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
                "Authorization": f"token {token}",
                "User-Agent": f"perfci/{VERSION}",
            }
        )
        self._most_wait_s = most_wait_s
        self._at = f"/repos/{quote(repository)}"
        self._sleep = sleep
        self._now = now

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def pull(self, number: int) -> Pull:
        """Return a pull request as it is now."""
        return self._get(f"/pulls/{number}", Pull)[0]

    def open_pulls(self, branch: str) -> tuple[Pull, ...]:
        """Return the open pull requests of ``branch``, which is ``owner:branch``."""
        return self._pages("/pulls", tuple[Pull, ...], tuple, state="open", head=branch)

    def parents(self, sha: str) -> tuple[str, ...]:
        """Return the parents of a commit, or none where the repository doesn't have it."""
        try:
            commit, _ = self._get(f"/git/commits/{quote(sha, safe='')}", _Commit)
        except Missing:
            return ()
        return tuple(parent.sha for parent in commit.parents)

    def comments(self, number: int) -> tuple[Comment, ...]:
        """Return all comments of a pull request, the oldest first."""
        return self._pages(f"/issues/{number}/comments", tuple[Comment, ...], tuple)

    def create_comment(self, number: int, body: str) -> Comment:
        """Comment, and return the comment."""
        return self._write("POST", f"/issues/{number}/comments", Comment, {"body": body})

    def update_comment(self, comment: Comment, body: str) -> Comment:
        """Replace a comment's text. Raises Unsure if it was deleted."""
        return self._write("PATCH", f"/issues/comments/{comment.id}", Comment, {"body": body})

    def delete_comment(self, comment: Comment) -> None:
        """Delete a comment. Does nothing if it is gone already."""
        with suppress(Missing):
            self._ask("DELETE", f"/issues/comments/{comment.id}")

    def checks(self, sha: str) -> tuple[Check, ...]:
        """Return every check run of perfci's name on a commit."""
        path = f"/commits/{sha}/check-runs"
        return self._pages(
            path, _Checks, lambda page: page.check_runs, check_name=CHECK, filter="all"
        )

    def create_check(self, sha: str, check: CheckContent) -> Check:
        """Create a finished check run."""
        request = {
            "name": CHECK,
            "head_sha": sha,
            "external_id": check.identity,
            "status": "completed",
            "conclusion": check.conclusion,
            "output": {
                "title": check.title,
                "summary": check.summary,
                "annotations": [asdict(each) for each in check.annotations],
            },
        }
        if check.url:
            request["details_url"] = check.url
        return self._write("POST", "/check-runs", Check, request)

    def retry(self, do: Callable[[], T]) -> T:
        """Return what ``do`` returns. After ``Unsure``, wait and try again.

        ``do`` looks at what is there, and writes what is missing. Raises OutsideError if that would
        take too many tries, or too long a wait.
        """
        waited, tries = 0.0, 0
        while True:
            try:
                return do()
            except Unsure as failure:
                wait = 2.0**tries if failure.wait is None else failure.wait
                tries += 1
                waited += wait
                if tries >= _TRIES:
                    message = f"{failure.message}, {tries} times over"
                    raise OutsideError(failure.slug, message, failure.advice) from failure
                if waited > self._most_wait_s:
                    message = f"{failure.message}; it would take a wait of {format_duration(wait)}"
                    raise OutsideError(failure.slug, message, _LATER) from failure
                self._sleep(wait)

    def _get(self, path: str, kind: type[T], **parameters: str) -> tuple[T, requests.Response]:
        answer = self.retry(lambda: self._ask("GET", path, parameters=parameters))
        return _parsed(answer, kind, f"GET {self._at}{path}"), answer

    def _pages(
        self, path: str, kind: type[T], items: Callable[[T], tuple[Any, ...]], /, **parameters: str
    ) -> tuple[Any, ...]:
        """Return a list's entries, requested ``_PAGE`` at a time."""
        entries: list[Any] = []
        page = 0
        while True:
            page += 1
            read, answer = self._get(path, kind, **parameters, per_page=str(_PAGE), page=str(page))
            entries += items(read)
            if "next" not in answer.links:
                return tuple(entries)

    def _write(self, verb: str, path: str, kind: type[T], body: dict[str, Any]) -> T:
        try:
            answer = self._ask(verb, path, body)
        except Missing as failure:
            # for something new: the token may not even look at the repository. What is to be
            # changed was there and has been deleted, so look again at what is there
            meant = Refused if verb == "POST" else Unsure
            raise meant(failure.slug, failure.message, failure.advice) from failure
        return _parsed(answer, kind, f"{verb} {self._at}{path}")

    def _ask(
        self,
        verb: str,
        path: str,
        body: dict[str, Any] | None = None,
        parameters: dict[str, str] | None = None,
    ) -> requests.Response:
        """Send one request, once. Raises on a failure.

        No redirect is followed: the token is for this server, and a redirected write might become
        a read.
        """
        request = f"{verb} {self._at}{path}"
        try:
            answer = self._session.request(
                verb,
                f"{self._api}{self._at}{path}",
                params=parameters,
                json=body,
                timeout=_LONGEST_SILENCE_S,
                allow_redirects=False,
            )
        except (InvalidSchema, InvalidURL, MissingSchema) as error:
            raise UsageError(
                "bad-address",
                f"GITHUB_API_URL is {self._api!r}, no address",
                "Give it as in https://api.github.com",
            ) from error
        except requests.RequestException as error:
            raise Unsure(
                "github-failed",
                f"{request} got no answer: {clean_line(str(error), 300)}",
                "Is GITHUB_API_URL right, and may this runner reach it?",
            ) from error
        judge(answer, request, self._now(), self._token)
        return answer


def _parsed(answer: requests.Response, kind: type[T], request: str) -> T:
    """Return ``answer`` decoded as ``kind``. OutsideError if it is something else."""
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise OutsideError(
            "strange-answer",
            f"{request} got an answer that GitHub never gives: {clean_line(str(error))}",
            "Is GITHUB_API_URL the address of GitHub's API? A proxy may have answered.",
        ) from error


def judge(answer: requests.Response, request: str, now: float, token: str = "") -> None:
    """Raise what ``answer`` means, unless it is a success. ``now`` is in s since 1970.

    A server's error may repeat the ``token``, which is in no message.
    """
    status, said = answer.status_code, _message(answer)
    if 200 <= status < 300 and status != 202:
        return
    said_safely = said.replace(token, "…") if token else said
    what = f"{request} was answered with {status} {clean_line(said_safely, 200)}".rstrip()
    if status in {403, 429}:
        wait = _requested_wait(answer, said, now)
        if wait is not None:
            raise Unsure(
                "github-failed", what, "GitHub limits how often it is asked.", wait or None
            )
    if status >= 500 or status in {202, 408, 409, 429}:
        raise Unsure("github-failed", what, _LATER)
    if status < 400:
        raise OutsideError(
            "github-failed",
            what,
            "Correct GITHUB_API_URL, or name the repository as it is called now.",
        )
    if status == 401:
        raise UsageError(
            "bad-token", what, "Give the job a token that is valid: GITHUB_TOKEN in its env."
        )
    if status == 403:
        raise Refused(
            "github-refused", what, "Give the job's token the right: see docs/commenting.md."
        )
    if status in {404, 410}:
        raise Missing(
            "not-there", what, "Is --repository right, and may the token read that repository?"
        )
    raise OutsideError("github-refused", what, "Please report it with this line.")


def _requested_wait(answer: requests.Response, said: str, now: float) -> float | None:
    """Return the wait in s that a rate limit asks for, or None if no rate is limited."""
    after = answer.headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(after):
        return float(after)
    if answer.headers.get("x-ratelimit-remaining") == "0":
        reset = answer.headers.get("x-ratelimit-reset", "")
        # a second more: the header doesn't say when in that second
        return max(0.0, float(reset) - now) + 1.0 if _SECONDS.fullmatch(reset) else _SECONDARY_WAIT
    return _SECONDARY_WAIT if after or _LIMITED.search(said.lower()) else None


def _message(answer: requests.Response) -> str:
    """Return GitHub's own words, or nothing: a proxy's page of HTML says nothing."""
    try:
        plain = msgspec.json.decode(answer.content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""
    message = plain.get("message") if isinstance(plain, dict) else None
    return message if isinstance(message, str) else ""


def client_of_step(repository: str | None) -> GitHubClient:
    """Return the client of a repository, with the step's token."""
    token = os.environ.get("GITHUB_TOKEN", "").strip()
    if _TOKEN.fullmatch(token) is None:
        raise UsageError(
            "bad-token" if token else "no-token",
            "GITHUB_TOKEN holds a character that no token has"
            if token
            else "GITHUB_TOKEN is not set",
            "Give the step `env: GITHUB_TOKEN: ${{ github.token }}`, and its job the rights "
            "pull-requests: write and checks: write.",
        )
    api_url = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
    return GitHubClient(_named(repository), token, api_url)


def _named(repository: str | None) -> str:
    """Return a repository's name as ``owner/name``. UsageError on anything else."""
    if repository is None or _REPOSITORY.fullmatch(repository) is None:
        raise UsageError(
            "no-repository",
            f"{repository!r} is not a repository" if repository else "the repository is not named",
            "Give --repository OWNER/NAME, or set GITHUB_REPOSITORY.",
        )
    return repository
