"""An HTTP endpoint that streams server-sent events, as a stream of tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from perfci.api.serving.server import ended_servers
from perfci.errors import Unusable

_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 20
_SHOWN = 500
_DIGITS = 18
_BOM = "\ufeff".encode()
"""What a stream of events may begin with."""
_DONE = b"[DONE]"
_FIELDS = frozenset({b"data", b"event", b"id", b"retry", b""})
"""A line that begins with a colon is a comment."""
_NO_TEXT = frozenset({"role"})
"""What of a choice's ``delta`` isn't the model's."""


class Endpoint:
    """Asks a URL; each call is one request, on a connection of its own."""

    def __init__(self, url: str, body: Any, headers: Mapping[str, str]) -> None:
        self.url = url
        parts = urlsplit(url)
        self._connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._address = parts.hostname or "", parts.port
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._method = "GET" if body is None else "POST"
        self._body = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        self._headers = {"Accept": "text/event-stream", **kind, **headers}

    def __call__(self) -> Iterator[str]:
        """Yield each token's event. Unusable for what is no whole stream of events."""
        connection = self._connect(*self._address)
        tokens = 0
        try:
            connection.request(self._method, self._target, self._body, self._headers)
            response = connection.getresponse()
            self._check(response)
            for one in _payloads(response):
                if _is_token(one):
                    tokens += 1
                    yield one
        except (OSError, HTTPException) as error:
            said = str(error) or type(error).__name__
            what = f"failed after {tokens} tokens: {said}"
            raise self._failure("request_failed", what) from error
        except ValueError as error:
            raise self._failure("bad_stream", str(error)) from error
        finally:
            connection.close()

    def _check(self, response: HTTPResponse) -> None:
        if response.status != 200:
            said = response.read(_SHOWN).decode("utf-8", "replace")
            what = f"answered {response.status} {response.reason}:\n{said}"
            raise self._failure("request_failed", what)
        kind = response.headers.get_content_type()
        if kind != "text/event-stream":
            raise ValueError(f"answered {kind}, not text/event-stream")

    def _failure(self, kind: str, what: str) -> Unusable:
        return Unusable(kind, "\n".join((f"{self._method} {self.url} {what}", *ended_servers())))


def _payloads(response: HTTPResponse) -> Iterator[str]:
    """Yield each event's data, up to ``[DONE]`` or the body's end.

    ValueError for what is no event, and for a body that was cut off: one that says no length ends
    with the connection, whoever closed that, so its stream has to say that it is done.
    """
    data: list[bytes] = []
    done = False
    for line in _lines(response):
        if done:  # what is left is read all the same: the server has then ended this request
            continue
        if not line:
            if data:
                yield b"\n".join(data).decode("utf-8", "replace")
                data.clear()
            continue
        name, _, value = line.partition(b":")
        if name not in _FIELDS:
            shown = repr(line.decode("utf-8", "replace")[:80])
            raise ValueError(f"sent a line that is no server-sent event: {shown}")
        if name != b"data":
            continue
        value = value.removeprefix(b" ")
        done = value == _DONE
        if not done:
            data.append(value)
    if done:
        return
    if data:
        raise ValueError("ended in the middle of an event")
    if not response.chunked and response.headers["Content-Length"] is None:
        raise ValueError("closed the connection without `data: [DONE]`")


def _lines(response: HTTPResponse) -> Iterator[bytes]:
    """Yield the lines of a body as they come, without their ends."""
    length = response.headers["Content-Length"]
    if length and not response.chunked and not (length.isascii() and length.isdigit()):
        raise ValueError(f"sent the length {length[:80]!r}")
    left = int(length[:_DIGITS]) if length and not response.chunked else None
    unread, begins = b"", True
    while left is None or left > 0:
        chunk = response.read1(_CHUNK if left is None else min(_CHUNK, left))
        if not chunk:
            break
        if left is not None:
            left -= len(chunk)
        *lines, unread = (unread + chunk).split(b"\n")
        for line in lines:
            yield (line.removeprefix(_BOM) if begins else line).removesuffix(b"\r")
            begins = False
        if len(unread) > _LONGEST_LINE:
            raise ValueError(f"sent a line of more than {_LONGEST_LINE:,} bytes")
    if left:
        raise ValueError(f"ended {left} bytes early")
    if unread:
        raise ValueError("ended in the middle of a line")


def _is_token(payload: str) -> bool:
    """Say whether an event carries a token.

    Not so of OpenAI's: the first, which only says whose turn it is, the last, which says why it is
    the last, and counts. Anything else is one. ValueError for an error that the stream reports.
    """
    if not payload.startswith("{"):
        return True
    try:
        event = json.loads(payload)
    except (ValueError, RecursionError):
        if '"choices"' in payload[:_SHOWN]:
            raise ValueError(f"sent an event that is no JSON: {payload[:80]!r}") from None
        return True  # a token of plain text may be a bracket
    if "error" in event:
        raise ValueError(f"reported an error: {json.dumps(event['error'])[:_SHOWN]}")
    choices = event.get("choices")
    if not isinstance(choices, list):
        return True
    return any(map(_has_text, choices))


def _has_text(choice: Any) -> bool:
    if not isinstance(choice, dict) or choice.get("text"):
        return True
    delta = choice.get("delta")
    return isinstance(delta, dict) and any(
        value for name, value in delta.items() if name not in _NO_TEXT
    )
