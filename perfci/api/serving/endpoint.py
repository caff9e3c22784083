"""A URL that streams tokens, as work's stream: one call makes one request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

from perfci.api.serving.events import (
    SHOWN_CHARACTERS,
    StreamEvent,
    no_tokens,
    payloads,
    stream_event,
)
from perfci.api.serving.server import ended_servers
from perfci.errors import Unusable


class Endpoint:
    """A URL to request with a body. Each call makes one request.

    A connection is used again if the server keeps it open.
    """

    def __init__(self, url: str, body: Any, headers: Mapping[str, str]) -> None:
        self.url = url
        parts = urlsplit(url)
        self._address = parts.hostname or "", parts.port
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._body = None if body is None else json.dumps(body).encode()
        self._method = "GET" if body is None else "POST"
        kind = {} if body is None else {"Content-Type": "application/json"}
        self._headers = {"Accept": "text/event-stream", **kind, **headers}
        self._idle: list[HTTPConnection] = []

    def __call__(self) -> Iterator[StreamEvent]:
        """Yield each event. Raises Unusable for anything but a whole stream of events."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = HTTPConnection(*self._address)
        tokens, kept = 0, False
        try:
            with self._response(connection) as response:
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

    def _response(self, connection: HTTPConnection) -> HTTPResponse:
        """Send a request, and return its response once the headers are there.

        A server may close an idle connection while it is used again. Only then is the request sent
        a second time, on a new connection.
        """
        is_idle = connection.sock is not None
        try:
            connection.request(self._method, self._target, self._body, self._headers)
            return connection.getresponse()
        except (BrokenPipeError, ConnectionResetError):
            if not is_idle:
                raise
        connection.close()  # `request` opens it again
        connection.request(self._method, self._target, self._body, self._headers)
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
