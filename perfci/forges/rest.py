"""A forge's REST API: what all forges have in common, and what their answers mean.

Reading is repeated while the forge fails. Writing never is: a failure may come after the write took
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
from typing import Any, ClassVar, TypeVar
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
"""The pace that GitHub's guide asks for. The others ask for less."""
_SHORTEST_TIMEOUT_S = 10.0
"""The least time-out of one request, in s: a slow forge isn't broken."""
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
"""The words of a forge that limits the rate."""
_SECONDARY_WAIT = 60.0
"""The wait that GitHub's guide asks for where a rate limit names no time, in s."""


Parameter = str | tuple[str, ...]
"""A parameter of a request's address. A parameter with several values is a tuple."""
Parameters = Mapping[str, Parameter]


def policy_of(most_wait_s: float) -> RetryPolicy:
    """Return the policy of ``--patience``."""
    return RetryPolicy(
        most=most_wait_s, timeout=max(most_wait_s, _SHORTEST_TIMEOUT_S), option="--patience"
    )


class Rest:
    """Requests to one repository or project of a forge. A write raises ``Unsure`` or ``Refused``.

    ``page`` is the repository's page on the web.
    """

    service: ClassVar[Service]
    root: ClassVar[str] = "/repos/"
    safe: ClassVar[str] = "/"
    """Characters of a project's name that aren't escaped in paths."""
    headers: ClassVar[Mapping[str, str]] = {"Accept": "application/json"}
    authorization: ClassVar[tuple[str, str]] = ("Authorization", "token ")
    """The header that holds the token, and the text before the token in it."""
    pages: ClassVar[tuple[str, str]] = ("per_page", "page")
    """The names of a list's parameters: entries per page, and the page."""
    statuses: ClassVar[str] = "/commits/{}/statuses"
    """The path of a commit's statuses."""
    status_filter: ClassVar[Mapping[str, str]] = {}
    """Parameters that select perfci's statuses."""
    status_name: ClassVar[str] = "context"
    """The field that holds the name of a commit status."""
    states: ClassVar[Mapping[str, str]] = {"success": "success", "failure": "failure"}
    """The forge's words for the states of a commit status, by perfci's words."""

    def __init__(
        self,
        project: str,
        token: str,
        api_url: str,
        policy: RetryPolicy | None = None,
        pace: Pace | None = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
        page: str = "",
    ) -> None:
        parts = address_of(api_url)
        if parts is None:
            raise UsageError(
                "bad-address",
                f"{self.service.address} is {api_url!r}, no address",
                f"Give it as in {self.service.example}",
            )
        self._api = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        header, before = self.authorization
        self._headers = {**self.headers, header: f"{before}{token}"}
        self._token = token
        self._policy = policy or policy_of(120.0)
        self._connection = Connection(self._policy.timeout, _MOST_BYTES, pace or GUIDE, sleep)
        self._at = f"{self.root}{quote(project, safe=self.safe)}"
        self._page = page
        self._sleep = sleep
        self._now = now

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def retry(self, do: Callable[[], T], before_again: Callable[[], object] = lambda: None) -> T:
        """Return what ``do`` returns. ``do`` looks at what is there, and writes what is missing."""
        return retry(do, self._policy, self._sleep, before_again)

    def text(self, body: str) -> str:
        """Return a comment's text as this forge should get it."""
        return body

    def status(self, sha: str) -> CommitStatus | None:
        """Return the newest status of perfci's name on a commit, in the words that forges share."""
        path, kind = self.statuses.format(sha), tuple[StatusAnswer, ...]
        answers: tuple[StatusAnswer, ...] = self._pages(path, kind, tuple, **self.status_filter)
        own = [status for status in answers if (status.context or status.name).casefold() == NAME]
        newest = max(own, key=lambda answer: answer.id, default=None)
        if newest is None:
            return None
        foreign = newest.state or newest.status
        state = next((ours for ours, name in self.states.items() if name == foreign), foreign)
        return CommitStatus(state, newest.description or "", newest.target_url or "")

    def create_status(self, sha: str, status: CommitStatus) -> None:
        """Set the status of perfci's name on a commit."""
        request = {
            "state": self.states[status.state],
            "description": status.description,
            self.status_name: NAME,
        }
        if status.url:
            request["target_url"] = status.url
        self._write("POST", f"/statuses/{sha}", StatusAnswer, request)

    def _get(self, path: str, kind: type[T], **parameters: Parameter) -> T:
        """Return an answer as ``kind``. Repeated while the forge fails: reading changes nothing."""
        return self._read(f"{self._at}{path}", kind, parameters)[0]

    def _account(self, kind: type[T]) -> T:
        """Return the account that the token posts as."""
        return self._read("/user", kind, {})[0]

    def _read(self, where: str, kind: type[T], parameters: Parameters) -> tuple[T, HttpResponse]:
        answer = self.retry(lambda: self._ask("GET", where, parameters=parameters))
        return parse(answer.text, kind, f"GET {where}", self.service), answer

    def _pages(
        self,
        path: str,
        kind: type[T],
        items: Callable[[T], tuple[Any, ...]],
        entries: int = _PAGE,
        /,
        **parameters: Parameter,
    ) -> tuple[Any, ...]:
        """Return a list's entries, requested ``entries`` at a time."""
        entries_read: list[Any] = []
        many, number = self.pages
        for page in range(1, _MOST_PAGES + 1):
            numbers = {many: str(entries), number: str(page)}
            read, answer = self._read(f"{self._at}{path}", kind, {**parameters, **numbers})
            more = items(read)
            entries_read += more
            if not _goes_on(answer, len(more) >= entries):
                return tuple(entries_read)
        raise OutsideError(
            "endless-list",
            f"{self._at}{path} has more than {_MOST_PAGES * entries} entries",
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
        return parse(answer.text, kind, f"{verb} {where}", self.service)

    def _ask(
        self,
        verb: str,
        path: str,
        body: dict[str, Any] | None = None,
        parameters: Parameters | None = None,
    ) -> HttpResponse:
        """Send one request, and follow redirects of the same server. Raises on a failure."""
        request = f"{verb} {path}"
        headers, content = self._headers, None
        if body is not None:
            headers = headers | {"Content-Type": "application/json"}
            content = json.dumps(body).encode()
        url = f"{self._api}{path}"
        if parameters:
            url += f"?{urlencode(sorted(parameters.items()), doseq=True)}"
        for _ in range(_MOST_HOPS):
            answer = self._send(request, verb, url, headers, content)
            if answer.status not in _MOVED or "location" not in answer.headers:
                break
            url = self._moved(request, url, answer.headers["location"])
        else:
            raise OutsideError(
                "moved", f"{request} goes in circles", f"Correct {self.service.address}."
            )
        if answer.status == 202 and verb == "GET":
            busy = f"{request} was answered with 202: not ready yet"
            raise Unsure(f"{self.service.slug}-busy", busy, self.service.later)
        if answer.status >= 300:  # a server's error may repeat what it was sent
            answer = replace(answer, text=self._without_token(answer.text))
        judge(answer, request, self._now(), self.service)
        return answer

    def _send(
        self, request: str, verb: str, url: str, headers: dict[str, str], content: bytes | None
    ) -> HttpResponse:
        try:
            answer = self._connection.send(verb, url, headers, content)
        except NoResponse as failure:
            what = f"got no answer: {failure.why}"
            advice = f"Is {self.service.address} right, and may this runner reach it?"
            if failure.spent:
                what = f"was not answered within {format_duration(failure.spent)}"
                advice = self.service.later
            spent = failure.spent
            raise Unsure("no-answer", f"{request} {what}", advice, spent=spent) from failure
        if not answer.whole:
            raise TooLong(
                "strange-answer",
                f"{request} was answered with more than {_MOST_BYTES >> 20} MiB",
                _strange(self.service),
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
                f"Correct {self.service.address}.",
            )
        return address

    def _without_token(self, text: str) -> str:
        return text.replace(self._token, "…") if self._token else text


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """A commit status. It has a ``context`` or a ``name``, a ``state`` or a ``status``."""

    id: int
    context: str = ""
    name: str = ""
    state: str = ""
    status: str = ""
    description: str | None = None
    target_url: str | None = None


def _goes_on(answer: HttpResponse, full: bool) -> bool:
    """Return whether another page follows.

    The answer's links say so. Without links, a ``full`` page is followed by another. A page may be
    shorter than requested: GitLab leaves out notes that the token may not see, and a Forgejo has
    its own limit.
    """
    links = answer.headers.get("link")
    return 'rel="next"' in links if links else full


def parse(text: str, kind: type[T], request: str, service: Service) -> T:
    """Return ``text`` decoded as ``kind``. OutsideError if it is something else."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        what = f"what {service.name} never says: {clean_line(str(error))}"
        raise OutsideError(
            "strange-answer", f"{request} was answered with {what}", _strange(service)
        ) from error


def _strange(service: Service) -> str:
    return f"Is {service.address} the address of {service.name}'s API? A proxy may have answered."


@dataclass(frozen=True, slots=True)
class Service:
    """A forge, as messages name it.

    ``address`` and ``token`` are the variables that hold them, ``example`` is an address, and
    ``rights`` is where the rights of a token are documented.
    """

    name: str
    address: str
    token: str
    example: str
    rights: str = "see docs/commenting.md"
    later: str = "Run it again later."

    @property
    def slug(self) -> str:
        """Return the name as slugs begin with it."""
        return self.name.lower()


class Unsure(Retryable):
    """The request may have taken effect, or came too soon. Look again, then repeat it if needed."""


class Refused(OutsideError):
    """The token may not do this. Nothing was written."""


class Rejected(OutsideError):
    """The forge does not take this request as it is. Nothing was written."""


class TooLong(OutsideError):
    """The answer is longer than what is read of one. A shorter page may fit."""


class Missing(OutsideError):
    """The thing requested isn't there, or the token may not even know that it is."""


def judge(answer: HttpResponse, request: str, now: float, service: Service) -> None:
    """Raise what ``answer`` means, unless it is a success. ``now`` is in s since 1970."""
    status = answer.status
    if 200 <= status < 300:
        return
    what = f"{request} was answered with {status} {_message(answer)}".rstrip()
    if status in {403, 429}:
        wait = _requested_wait(answer, now)
        if wait is not None:
            limit = f"{service.name} limits how often it is asked."
            raise Unsure(f"{service.slug}-limit", what, limit, wait or None)
    if status >= 500 or status in {408, 409, 429}:  # GitLab's 409: the status is being written
        raise Unsure(f"{service.slug}-failed", what, service.later)
    if status == 401:
        raise UsageError(
            "bad-token", what, f"Give the job a token that is valid: {service.token} in its env."
        )
    if status == 403:
        raise Refused("no-rights", what, f"Give the job's token the right: {service.rights}.")
    if status in {404, 410}:
        raise Missing(
            "not-there", what, "Is --repository right, and may the token read that repository?"
        )
    raise Rejected(f"{service.slug}-refused", what, "Please report it with this line.")


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
    """Return the forge's own words, or nothing: a proxy's page of HTML says nothing."""
    try:
        plain = msgspec.json.decode(answer.text)
    except (msgspec.DecodeError, RecursionError):
        return ""
    if not isinstance(plain, dict):
        return ""
    message = plain.get("message") or plain.get("error")
    if isinstance(message, dict):  # GitLab's, by field
        message = msgspec.json.encode(message).decode()
    return clean_line(message, 200) if isinstance(message, str) else ""
