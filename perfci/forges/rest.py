"""Requests to GitHub's REST API, and what its answers mean.

Reading is repeated while GitHub fails. Writing never is: a failure may come after the write took
effect, and a repeat would leave two comments. The caller of a write gets ``Unsure``, and looks at
what is there (see ``posting``). So the waits are decided here, and not by urllib3's ``Retry``,
which would send a write again, and knows neither GitHub's rate limits nor a limit of all waits.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
import requests
from requests.exceptions import InvalidSchema, InvalidURL, MissingSchema

from perfci.errors import OutsideError, UsageError
from perfci.report.clean import clean_line
from perfci.units import format_duration
from perfci.version import VERSION

T = TypeVar("T")
_LONGEST_SILENCE_S = 15.0
"""The longest wait for the next byte of an answer, in s."""
_TRIES = 5
_PAGE = 100
"""Entries that are requested per page."""
_SECONDS = re.compile(r"[0-9]{1,12}")
"""Digits alone. ``isdigit`` takes more, such as ``²``."""
_LIMITED = re.compile(
    r"rate limit|abuse detection|wait a few minutes|retry your request again later", re.IGNORECASE
)
"""GitHub's words where it limits the rate."""
_SECONDARY_WAIT = 60.0
"""The wait that GitHub's guide asks for where a rate limit names no time, in s."""
_LATER = "Run it again; https://www.githubstatus.com may know."


class Rest:
    """Requests to one repository. A write raises ``Unsure`` or ``Refused``.

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
                if tries >= _TRIES:
                    message = f"{failure.message}, {tries} times over"
                    raise OutsideError(failure.slug, message, failure.advice) from failure
                if waited + wait > self._most_wait_s:
                    raise OutsideError(
                        failure.slug,
                        f"{failure.message}; it would take a wait of {format_duration(wait)}",
                        "Run it again later, or allow more than --patience "
                        f"{self._most_wait_s:g}s.",
                    ) from failure
                waited += wait
                self._sleep(wait)

    def _get(self, path: str, kind: type[T], **parameters: str) -> T:
        """Return an answer as ``kind``. Repeated while GitHub fails: reading changes nothing."""
        return self._read(path, kind, parameters)[0]

    def _read(
        self, path: str, kind: type[T], parameters: Mapping[str, str]
    ) -> tuple[T, requests.Response]:
        answer = self.retry(lambda: self._ask("GET", path, parameters=parameters))
        return parse(answer.content, kind, f"GET {self._at}{path}"), answer

    def _pages(
        self, path: str, kind: type[T], items: Callable[[T], tuple[Any, ...]], /, **parameters: str
    ) -> tuple[Any, ...]:
        """Return a list's entries, requested ``_PAGE`` at a time."""
        entries: list[Any] = []
        page = 0
        while True:
            page += 1
            numbers = {"per_page": str(_PAGE), "page": str(page)}
            read, answer = self._read(path, kind, {**parameters, **numbers})
            entries += items(read)
            if "next" not in answer.links:
                return tuple(entries)

    def _delete(self, path: str) -> None:
        """Delete what is at ``path``. Does nothing if it is gone already."""
        with suppress(Missing):
            self._ask("DELETE", path)

    def _write(self, verb: str, path: str, kind: type[T], body: dict[str, Any]) -> T:
        try:
            answer = self._ask(verb, path, body)
        except Missing as failure:
            # for something new: the token may not even look at the repository. What is to be
            # changed was there and has been deleted, so look again at what is there
            meant = Refused if verb == "POST" else Unsure
            raise meant(failure.slug, failure.message, failure.advice) from failure
        return parse(answer.content, kind, f"{verb} {self._at}{path}")

    def _ask(
        self,
        verb: str,
        path: str,
        body: dict[str, Any] | None = None,
        parameters: Mapping[str, str] | None = None,
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
                "no-answer",
                f"{request} got no answer: {clean_line(str(error), 300)}",
                "Is GITHUB_API_URL right, and may this runner reach it?",
            ) from error
        if answer.status_code == 202 and verb == "GET":
            raise Unsure("github-busy", f"{request} was answered with 202: not ready yet", _LATER)
        judge(answer, request, self._now(), self._token)
        return answer


def parse(text: str | bytes, kind: type[T], request: str) -> T:
    """Return ``text`` decoded as ``kind``. OutsideError if it is something else."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise OutsideError(
            "strange-answer",
            f"{request} was answered with what GitHub never says: {clean_line(str(error))}",
            "Is GITHUB_API_URL the address of GitHub's API? A proxy may have answered.",
        ) from error


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


def judge(answer: requests.Response, request: str, now: float, token: str = "") -> None:
    """Raise what ``answer`` means, unless it is a success. ``now`` is in s since 1970.

    A server's error may repeat the ``token``, which is in no message.
    """
    status, said = answer.status_code, _message(answer)
    if 200 <= status < 300:
        return
    said_safely = said.replace(token, "…") if token else said
    what = f"{request} was answered with {status} {clean_line(said_safely, 200)}".rstrip()
    if status in {403, 429}:
        wait = _requested_wait(answer, said, now)
        if wait is not None:
            limit = "GitHub limits how often it is asked."
            raise Unsure("github-limit", what, limit, wait or None)
    if status >= 500 or status in {408, 409, 429}:
        raise Unsure("github-failed", what, _LATER)
    if status < 400:
        raise OutsideError(
            "moved", what, "Correct GITHUB_API_URL, or name the repository as it is called now."
        )
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
    return _SECONDARY_WAIT if after or _LIMITED.search(said) else None


def _message(answer: requests.Response) -> str:
    """Return GitHub's own words, or nothing: a proxy's page of HTML says nothing."""
    try:
        plain = msgspec.json.decode(answer.content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""
    message = plain.get("message") if isinstance(plain, dict) else None
    return message if isinstance(message, str) else ""
