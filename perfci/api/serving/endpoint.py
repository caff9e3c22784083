"""A URL that streams tokens, as work's stream: one call makes one request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from perfci.api import measured_side
from perfci.api.serving.events import SHOWN_CHARACTERS, StreamEvent, payloads, stream_event
from perfci.api.serving.server import ended_servers
from perfci.api.serving.tokens import no_tokens
from perfci.errors import Unusable

Url = str | Mapping[str, str]
"""A URL for both sides, or each side's by ``base`` and ``head``."""


class Endpoint:
    """A URL to request. Each call makes one request, with the next body in turn.

    A connection is used again if the server keeps it open.
    """

    def __init__(self, url: Url, bodies: Sequence[Any], headers: Mapping[str, str]) -> None:
        self.url = url if isinstance(url, str) else url[measured_side.get()]
        parts = urlsplit(self.url)
        self._connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._address = parts.hostname or "", parts.port
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.prompts = len(bodies)
        self._bodies = [None if body is None else json.dumps(body).encode() for body in bodies]
        self._method = "GET" if self._bodies == [None] else "POST"
        kind = {} if self._method == "GET" else {"Content-Type": "application/json"}
        self._headers = {"Accept": "text/event-stream", **kind, **headers}
        self._idle: list[HTTPConnection] = []
        self.rewind()

    def rewind(self) -> None:
        """Begin again with the first body."""
        self._turns = count()

    def __call__(self) -> Iterator[StreamEvent]:
        """Yield each event. Raises Unusable for anything but a whole stream of events."""
        body = self._bodies[next(self._turns) % self.prompts]
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect(*self._address)
        tokens, kept = 0, False
        try:
            with self._response(connection, body) as response:
                self._check(response)
                for payload in payloads(response):
                    event = stream_event(payload)
                    tokens += event.has_tokens
                    yield event
            if not tokens:
                raise no_tokens()
            kept = not response.will_close  # its body was read to the end
        except (OSError, HTTPException) as error:
            what = f"failed after {tokens} tokens: {str(error) or type(error).__name__}"
            raise self._failure("request_failed", what) from error
        except ValueError as error:
            raise self._failure("bad_stream", str(error)) from error
        finally:
            if kept:
                self._idle.append(connection)
            else:
                connection.close()

    def _response(self, connection: HTTPConnection, body: bytes | None) -> HTTPResponse:
        """Send a request, and return its response once the headers are there.

        A server may close an idle connection while it is used again. Only then is the request sent
        a second time, on a new connection.
        """
        is_idle = connection.sock is not None
        try:
            connection.request(self._method, self._target, body, self._headers)
            return connection.getresponse()
        except (BrokenPipeError, ConnectionResetError):
            if not is_idle:
                raise
        connection.close()  # `request` opens it again
        connection.request(self._method, self._target, body, self._headers)
        return connection.getresponse()

    def _check(self, response: HTTPResponse) -> None:
        if response.status != 200:
            body = response.read(SHOWN_CHARACTERS).decode("utf-8", "replace")
            what = f"answered {response.status} {response.reason}:\n{body}"
            raise self._failure("request_failed", what)
        kind = response.headers.get_content_type()
        if kind != "text/event-stream":
            raise ValueError(f"answered {kind}, not text/event-stream")

    def _failure(self, kind: str, what: str) -> Unusable:
        return Unusable(kind, "\n".join((f"{self._method} {self.url} {what}", *ended_servers())))


def _is_url(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").encode("idna")
        return parts.scheme in {"http", "https"} and bool(host) and parts.port != 0
    except ValueError:  # a port beyond 65535, a label that is empty or too long
        return False


def wrong_url(url: object) -> str:
    """Return what is wrong with a URL, or with each side's, or an empty text."""
    if isinstance(url, Mapping):
        if set(url) != {"base", "head"}:
            return f"the URLs are for {', '.join(map(repr, url))}; give one for each of base, head"
        return next((wrong for text in url.values() if (wrong := wrong_url(text))), "")
    if not _is_url(url):
        return f"the URL is {url!r}; give one of http:// or https:// with a host"
    return ""
