"""Server-sent events of a response, and the tokens that they carry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any

SHOWN_CHARACTERS = 500
"""Most characters of a server's text in a message."""
_CHUNK = 1 << 16
_LONGEST_EVENT_LINE = 1 << 20
_MOST_DIGITS = 18
"""Digits of a ``Content-Length`` that are read. A longer number is as good as endless."""
_BOM = "\ufeff".encode()
"""Byte order mark, with which a stream of events may begin."""
_DONE = b"[DONE]"
"""Data of the event that ends a stream by OpenAI's convention."""
_FIELDS = frozenset({b"data", b"event", b"id", b"retry", b""})
"""Fields of server-sent events. The empty name is that of a comment, which begins with a colon."""
_NO_TEXT = frozenset({"role"})
"""Keys of a choice's ``delta`` that don't hold the model's text."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream. ``has_tokens`` tells whether it carries at least one token.

    ``usage`` is the number of tokens
    that the model has written so far, or None if the event doesn't report it.
    """

    has_tokens: bool
    usage: int | None = None


def payloads(response: HTTPResponse) -> Iterator[str]:
    """Yield each event's data, up to ``[DONE]`` or the body's end.

    Raises ValueError for a line that isn't part of an event, and for a body that was cut off. A
    body without a length ends when the connection closes, so its last event has to be ``[DONE]``.
    """
    data: list[bytes] = []
    done = False
    for line in _lines(response):
        if done:  # read the rest, too, so that the server ends this request
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
    """Yield the lines of a body as they arrive, without their ends."""
    length = response.headers["Content-Length"]
    if length and not response.chunked and not (length.isascii() and length.isdigit()):
        raise ValueError(f"sent the length {length[:80]!r}")
    left = int(length[:_MOST_DIGITS]) if length and not response.chunked else None
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
        if len(unread) > _LONGEST_EVENT_LINE:
            raise ValueError(f"sent a line of more than {_LONGEST_EVENT_LINE:,} bytes")
    if left:
        raise ValueError(f"ended {left} bytes early")
    if unread:
        raise ValueError("ended in the middle of a line")


def stream_event(payload: str) -> StreamEvent:
    """Return the event with this data.

    In OpenAI's streams, the first event (the role), the last (the reason to stop) and the counts
    carry no token. Any other event carries at least one. Raises ValueError for an error that the
    stream reports.
    """
    if not payload.startswith("{"):
        return StreamEvent(has_tokens=True)
    try:
        content = json.loads(payload)
    except (ValueError, RecursionError):
        if '"choices"' in payload[:SHOWN_CHARACTERS]:
            raise ValueError(f"sent an event that is no JSON: {payload[:80]!r}") from None
        return StreamEvent(has_tokens=True)  # a token of plain text may be a bracket
    if "error" in content:
        raise ValueError(f"reported an error: {json.dumps(content['error'])[:SHOWN_CHARACTERS]}")
    usage, choices = _usage(content), content.get("choices")
    if not isinstance(choices, list):
        return StreamEvent(has_tokens=True, usage=usage)
    return StreamEvent(has_tokens=any(map(_has_tokens, choices)), usage=usage)


def _usage(content: Mapping[str, Any]) -> int | None:
    usage = content.get("usage")
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return count if type(count) is int and count >= 0 else None


def _has_tokens(choice: Any) -> bool:
    """Return whether a choice has something that the model wrote, or is of an unknown form."""
    if not isinstance(choice, dict):
        return True
    delta = choice.get("delta")
    values = [choice.get("text")]
    if isinstance(delta, dict):
        values += [value for name, value in delta.items() if name not in _NO_TEXT]
    return any(values)
