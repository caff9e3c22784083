"""Requests to GitHub's REST API, and what its answers mean.

Reading is repeated while GitHub fails. Writing never is: a failure may come after the write took
effect, and a repeat would leave two comments. The caller of a write gets ``Unsure``, and looks at
what is there (see ``posting``).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from perfci.errors import OutsideError, UsageError
from perfci.forges.base import NAME, CommitStatus
from perfci.forges.http import (
    Connection,
    HttpResponse,
    NoResponse,
    Pace,
    Retryable,
    RetryPolicy,
    address_of,
    redirected,
    requested_wait,
    retry,
    whole_seconds,
)
from perfci.report.clean import clean_line
from perfci.units import format_duration

T = TypeVar("T")
GUIDE = Pace(requests=0.25, writes=1.0)
"""The pace that GitHub's guide asks for."""
_SHORTEST_TIMEOUT_S = 10.0
"""The least time-out of one request, in s: a slow server isn't broken."""
_PAGE = 100
"""Entries that are requested per page."""
_MOST_PAGES = 300
"""Pages of a list that are read."""
_MOST_BYTES = 64 << 20
"""Largest answer that is read.

A page of a hundred comments, each as long as GitHub allows, has less than half of it.
"""
_MOST_HOPS = 3
"""Addresses that one request is sent to, following redirects."""
_MOVED = {301, 307, 308}
"""Redirects after which the same request is sent to the new address. Nothing was done yet."""
_LIMITED = re.compile(
    r"rate limit|abuse detection|wait a few minutes|retry your request again later", re.IGNORECASE
)
"""GitHub's words where it limits the rate."""
_SECONDARY_WAIT = 60.0
"""The wait that GitHub's guide asks for where a rate limit names no time, in s."""
_LATER = "Run it again; https://www.githubstatus.com may know."
_STRANGE = "Is GITHUB_API_URL the address of GitHub's API? A proxy may have answered."


def policy_of(most_wait_s: float) -> RetryPolicy:
    """Return the policy of ``--patience``."""
    return RetryPolicy(
        most=most_wait_s, timeout=max(most_wait_s, _SHORTEST_TIMEOUT_S), option="--patience"
    )


class Rest:
    """Requests to one repository. A write raises ``Unsure`` or ``Refused``."""

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
            "X-GitHub-Api-Version": "2022-11-28",
            "Authorization": f"token {token}",
        }
        self._token = token
        self._policy = policy or policy_of(120.0)
        self._connection = Connection(self._policy.timeout, _MOST_BYTES, pace or GUIDE, sleep)
        self._at = f"/repos/{quote(repository)}"
        self._sleep = sleep
        self._now = now

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def retry(self, do: Callable[[], T], before_again: Callable[[], object] = lambda: None) -> T:
        """Return what ``do`` returns. ``do`` looks at what is there, and writes what is missing."""
        return retry(do, self._policy, self._sleep, before_again)

    def status(self, sha: str) -> CommitStatus | None:
        """Return the newest status of perfci's name on a commit."""
        kind = tuple[StatusAnswer, ...]
        answers: tuple[StatusAnswer, ...] = self._pages(f"/commits/{sha}/statuses", kind, tuple)
        own = [status for status in answers if status.context.casefold() == NAME]
        newest = max(own, key=lambda answer: answer.id, default=None)
        if newest is None:
            return None
        return CommitStatus(newest.state, newest.description or "", newest.target_url or "")

    def create_status(self, sha: str, status: CommitStatus) -> None:
        """Set the status of perfci's name on a commit."""
        request = {"state": status.state, "description": status.description, "context": NAME}
        if status.url:
            request["target_url"] = status.url
        self._write("POST", f"/statuses/{sha}", StatusAnswer, request)

    def _get(self, path: str, kind: type[T], **parameters: str) -> T:
        """Return an answer as ``kind``. Repeated while the forge fails: reading changes nothing."""
        return self._read(f"{self._at}{path}", kind, parameters)[0]

    def _read(
        self, where: str, kind: type[T], parameters: Mapping[str, str]
    ) -> tuple[T, HttpResponse]:
        answer = self.retry(lambda: self._ask("GET", where, parameters=parameters))
        return parse(answer.text, kind, f"GET {where}"), answer

    def _pages(
        self, path: str, kind: type[T], items: Callable[[T], tuple[Any, ...]], /, **parameters: str
    ) -> tuple[Any, ...]:
        """Return a list's entries, requested ``_PAGE`` at a time."""
        entries_read: list[Any] = []
        for page in range(1, _MOST_PAGES + 1):
            numbers = {"per_page": str(_PAGE), "page": str(page)}
            read, answer = self._read(f"{self._at}{path}", kind, {**parameters, **numbers})
            more = items(read)
            entries_read += more
            if not _goes_on(answer, len(more) >= _PAGE):
                return tuple(entries_read)
        raise OutsideError(
            "endless-list",
            f"{self._at}{path} has more than {_MOST_PAGES * _PAGE} entries",
            "Start a new one: no one can read this one any more.",
        )

    def _delete(self, path: str) -> None:
        """Delete what is at ``path``. Does nothing if it is gone already."""
        with suppress(Missing):
            self._ask("DELETE", f"{self._at}{path}")

    def _write(self, verb: str, path: str, kind: type[T], body: dict[str, Any]) -> T:
        where = f"{self._at}{path}"
        try:
            answer = self._ask(verb, where, body)
        except Missing as failure:
            # for something new: the token may not even look at the repository. What is to be
            # changed was there and has been deleted, so look again at what is there
            meant = Refused if verb == "POST" else Unsure
            raise meant(failure.slug, failure.message, failure.advice) from failure
        return parse(answer.text, kind, f"{verb} {where}")

    def _ask(
        self,
        verb: str,
        path: str,
        body: dict[str, Any] | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        """Send one request, and follow redirects of the same server. Raises on a failure."""
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
            url = self._moved(request, url, answer.headers["location"])
        else:
            raise OutsideError("moved", f"{request} goes in circles", "Correct GITHUB_API_URL.")
        if answer.status == 202 and verb == "GET":
            busy = f"{request} was answered with 202: not ready yet"
            raise Unsure("github-busy", busy, _LATER)
        if answer.status >= 300:  # a server's error may repeat what it was sent
            answer = replace(answer, text=self._without_token(answer.text))
        judge(answer, request, self._now())
        return answer

    def _send(
        self, request: str, verb: str, url: str, headers: dict[str, str], content: bytes | None
    ) -> HttpResponse:
        try:
            answer = self._connection.send(verb, url, headers, content)
        except NoResponse as failure:
            what = f"got no answer: {failure.why}"
            advice = "Is GITHUB_API_URL right, and may this runner reach it?"
            if failure.spent:
                what = f"was not answered within {format_duration(failure.spent)}"
                advice = _LATER
            spent = failure.spent
            raise Unsure("no-answer", f"{request} {what}", advice, spent=spent) from failure
        if not answer.whole:
            raise TooLong(
                "strange-answer",
                f"{request} was answered with more than {_MOST_BYTES >> 20} MiB",
                _STRANGE,
            )
        return answer

    def _moved(self, request: str, url: str, location: str) -> str:
        """Return where a redirect leads.

        Raises OutsideError for another server, which must not get the token.
        """
        address = redirected(url, location)
        if address is None:
            raise OutsideError(
                "moved",
                f"{request} was sent elsewhere: {clean_line(self._without_token(location))}",
                "Correct GITHUB_API_URL.",
            )
        return address

    def _without_token(self, text: str) -> str:
        return text.replace(self._token, "…") if self._token else text


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """A commit status."""

    id: int
    context: str
    state: str
    description: str | None = None
    target_url: str | None = None


def _goes_on(answer: HttpResponse, full: bool) -> bool:
    """Return whether another page follows.

    The answer's links say so. Without links, a ``full`` page is followed by another.
    """
    links = answer.headers.get("link")
    return 'rel="next"' in links if links else full


def parse(text: str, kind: type[T], request: str) -> T:
    """Return ``text`` decoded as ``kind``. OutsideError if it is something else."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        what = f"what GitHub never says: {clean_line(str(error))}"
        raise OutsideError(
            "strange-answer", f"{request} was answered with {what}", _STRANGE
        ) from error


class Unsure(Retryable):
    """The request may have taken effect, or came too soon. Look again, then repeat it if needed."""


class Refused(OutsideError):
    """The token may not do this. Nothing was written."""


class Rejected(OutsideError):
    """GitHub does not take this request as it is. Nothing was written."""


class TooLong(OutsideError):
    """The answer is longer than what is read of one. A shorter page may fit."""


class Missing(OutsideError):
    """The thing requested isn't there, or the token may not even know that it is."""


def judge(answer: HttpResponse, request: str, now: float) -> None:
    """Raise what ``answer`` means, unless it is a success. ``now`` is in s since 1970."""
    status = answer.status
    if 200 <= status < 300:
        return
    what = f"{request} was answered with {status} {_message(answer)}".rstrip()
    if status in {403, 429}:
        wait = _requested_wait(answer, now)
        if wait is not None:
            limit = "GitHub limits how often it is asked."
            raise Unsure("github-limit", what, limit, wait or None)
    if status >= 500 or status in {408, 409, 429}:
        raise Unsure("github-failed", what, _LATER)
    if status == 401:
        raise UsageError(
            "bad-token", what, "Give the job a token that is valid: GITHUB_TOKEN in its env."
        )
    if status == 403:
        raise Refused("no-rights", what, "Give the job's token the right: see docs/commenting.md.")
    if status in {404, 410}:
        raise Missing(
            "not-there", what, "Is --repository right, and may the token read that repository?"
        )
    raise Rejected("github-refused", what, "Please report it with this line.")


def _requested_wait(answer: HttpResponse, now: float) -> float | None:
    """Return the wait in s that a rate limit asks for, or None if no rate is limited."""
    after = answer.headers.get("retry-after", "")
    wait = requested_wait(after, now)
    if wait is not None:
        return wait
    if answer.headers.get("x-ratelimit-remaining") == "0":
        reset = whole_seconds(answer.headers.get("x-ratelimit-reset", ""))
        # a second more: the header doesn't say when in that second
        return _SECONDARY_WAIT if reset is None else max(0.0, reset - now) + 1.0
    if after:  # a Retry-After that names no time
        return _SECONDARY_WAIT
    return _SECONDARY_WAIT if _LIMITED.search(_message(answer)) else None


def _message(answer: HttpResponse) -> str:
    """Return GitHub's own words, or nothing: a proxy's page of HTML says nothing."""
    try:
        plain = msgspec.json.decode(answer.text)
    except (msgspec.DecodeError, RecursionError):
        return ""
    if not isinstance(plain, dict):
        return ""
    message = plain.get("message")
    return clean_line(message, 200) if isinstance(message, str) else ""
