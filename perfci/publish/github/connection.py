"""What PyGithub asks through: a request has an end, whatever the server does.

PyGithub's own connection gives up between two bytes only, so that a byte a second lasts for ever;
it repeats what is answered by 202 without end, and takes apart headers that aren't numbers.
"""

from __future__ import annotations

import re
from collections.abc import ItemsView
from dataclasses import dataclass
from urllib.parse import urlsplit

import requests

from perfci.errors import OutsideError, UsageError
from perfci.publish.github.failing import Unsure
from perfci.publish.http import address_of, within
from perfci.units import format_duration

_SILENCE = 15.0
"""The longest wait for the next byte, in s."""
_MOST_BYTES = 64 << 20
"""A page of a hundred comments, each as long as GitHub lets it be, has less than half of it."""
_MOST_HOPS = 3
_NUMBER = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class _Response:
    """An answer, as PyGithub reads one."""

    status: int
    headers: dict[str, str]
    text: str

    def getheaders(self) -> ItemsView[str, str]:
        return self.headers.items()

    def read(self) -> str:
        return self.text


class Connection:
    """A connection to one server, kept open between requests; ``most`` s for each, all in all."""

    def __init__(self, api_url: str, most: float) -> None:
        parts = urlsplit(api_url)
        self._server = f"{parts.scheme}://{parts.netloc}"
        self._most = most
        self._session = _session()

    def close(self) -> None:
        """Close it."""
        self._session.close()

    def asking(self, request: str) -> Asking:
        """Return what PyGithub takes for a connection, for ``request`` alone."""
        return Asking(self, request)

    def send(
        self, verb: str, path: str, body: str | None, headers: dict[str, str], request: str
    ) -> _Response:
        """Return the answer; Unsure where it isn't there in time."""
        session = self._session

        def ask() -> _Response:
            with session.request(
                verb,
                f"{self._server}{path}",
                headers=headers,
                data=body,
                timeout=min(_SILENCE, self._most),
                allow_redirects=False,
                stream=True,
            ) as answer:
                return _Response(answer.status_code, _headers(answer), _text(answer, request))

        try:
            return within(ask, self._most)
        except TimeoutError as error:
            self._session = _session()  # the old one is still in use by who isn't waited for
            raise Unsure(
                "no-answer",
                f"{request} was not answered within {format_duration(self._most)}",
                "Run it again; https://www.githubstatus.com may know.",
                spent=self._most,
            ) from error


class Asking:
    """One request and the redirects that PyGithub follows for it."""

    def __init__(self, connection: Connection, request: str) -> None:
        self._connection = connection
        self._request = request
        self._sent: tuple[str, str, str | None, dict[str, str]] = ("", "", None, {})
        self._hops = 0

    def request(
        self,
        verb: str,
        path: str,
        body: str | None,
        headers: dict[str, str],
        stream: bool = False,  # noqa: ARG002 (PyGithub's signature)
    ) -> None:
        """Take what ``getresponse`` is to send."""
        self._sent = (verb, path, body, headers)

    def getresponse(self) -> _Response:
        """Send it. A 202 is "not yet": PyGithub would ask for ever."""
        self._hops += 1
        if self._hops > _MOST_HOPS:
            raise OutsideError(
                "moved", f"{self._request} is sent in circles", "Correct GITHUB_API_URL."
            )
        verb, path, body, headers = self._sent
        answer = self._connection.send(verb, path, body, headers, self._request)
        if answer.status == requests.codes.accepted and verb == "GET":
            raise Unsure(
                "github-busy",
                f"{self._request} was answered with 202: not ready yet",
                "Run it again; https://www.githubstatus.com may know.",
            )
        return answer


def require_address(api_url: str) -> None:
    """Return where ``api_url`` is the address of a server; else UsageError."""
    if address_of(api_url) is None:
        raise UsageError(
            "bad-address",
            f"GITHUB_API_URL is {api_url!r}, no address",
            "Give it as in https://api.github.com",
        )


def _session() -> requests.Session:
    session = requests.Session()
    session.auth = _no_auth
    return session


def _no_auth(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Keep the password of a .netrc from taking the token's place."""
    return request


def _headers(answer: requests.Response) -> dict[str, str]:
    """Return the headers, of the rate limit's those that PyGithub can take for numbers."""
    return {
        name: value
        for name, value in answer.headers.items()
        if not name.lower().startswith("x-ratelimit-")
        or name.lower() == "x-ratelimit-resource"
        or _NUMBER.fullmatch(value)
    }


def _text(answer: requests.Response, request: str) -> str:
    content = bytearray()
    for piece in answer.iter_content(1 << 16):
        content += piece
        if len(content) > _MOST_BYTES:
            raise OutsideError(
                "strange-answer",
                f"{request} was answered with more than {_MOST_BYTES >> 20} MiB",
                "Is GITHUB_API_URL the address of GitHub's API? A proxy may have answered.",
            )
    return content.decode("utf-8", "replace")
