"""Server-sent events of a response, and the number and the times of the tokens that they carry.

An event may carry several tokens, and how many is known from the stream's ``usage``. The tokens of
an event share the time since the event before.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPResponse
from itertools import accumulate, pairwise
from typing import Any

from perfci.errors import Unusable

SHOWN_CHARACTERS = 500
"""Most characters of a server's text in a message."""
_LONGEST_LINE = 1 << 20
_DONE = b"[DONE]"
"""Data of the event that ends a stream by OpenAI's convention."""
_FIELDS = frozenset({b"data", b"event", b"id", b"retry", b""})
"""Fields of server-sent events. The empty name is that of a comment, which begins with a colon."""
_NO_TEXT = frozenset({"role"})
"""Keys of a choice's ``delta`` that don't hold the model's text."""
MOST_TOKENS = 1_000_000
"""Most tokens of a request. Without a limit, an endless stream would take all memory."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream. ``has_tokens`` tells whether it carries at least one token.

    ``usage`` is the number of tokens that the model has written so far, or None if the event
    doesn't report it.
    """

    has_tokens: bool
    usage: int | None = None


def payloads(response: HTTPResponse) -> Iterator[str]:
    """Yield each event's data, up to ``[DONE]`` or the body's end.

    Raises ValueError for a line that isn't part of an event, and for a body that was cut off. The
    message is the predicate of a sentence about the server. A body without a length ends when the
    connection closes, so its last event has to be ``[DONE]``.
    """
    ends_by_closing = not response.chunked and response.length is None
    data: list[bytes] = []
    done = False
    while raw := response.readline(_LONGEST_LINE):
        line = raw.rstrip(b"\r\n")
        if line == raw:
            raise ValueError(f"cut off a line, or sent one of more than {_LONGEST_LINE:,} bytes")
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
            raise ValueError(f"sent a line that isn't a server-sent event: {shown}")
        if name == b"data":
            value = value.removeprefix(b" ")
            done = value == _DONE
            data += [] if done else [value]
    if response.length:
        raise ValueError(f"ended {response.length} bytes early")
    if data and not done:
        raise ValueError("ended in the middle of an event")
    if ends_by_closing and not done:
        raise ValueError("closed the connection without `data: [DONE]`")


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
            raise ValueError(f"sent an event that isn't JSON: {payload[:80]!r}") from None
        return StreamEvent(has_tokens=True)  # a token of plain text may be a bracket
    if error := content.get("error"):
        raise ValueError(f"reported an error: {json.dumps(error)[:SHOWN_CHARACTERS]}")
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


def token_times(times: Sequence[float], events: Sequence[StreamEvent]) -> array[float]:
    """Return the times of a request's tokens.

    ``times`` are those of the items that the request yielded: the ``events`` of a stream, or, if
    there are none, the tokens themselves.
    Raises Unusable for a stream that reports no token, or too many.
    """
    if not events:
        return array("d", times)
    shares, total = _reported(events)
    if total > MOST_TOKENS:
        raise endless()
    if total < 1:
        raise no_tokens()
    carrying = zip(times, events, strict=True)
    return spread([time for time, event in carrying if event.has_tokens], shares, total)


def _reported(events: Sequence[StreamEvent]) -> tuple[list[int], int]:
    """Return each event's share of the tokens, and their number, by the usage or the events.

    Some servers report the usage with each event. From others, only the total is known, and the
    events have equal shares.
    """
    count = sum(event.has_tokens for event in events)
    reported = [event.usage for event in events if event.usage is not None]
    if not reported:
        return [1] * count, count
    by_event = [event.usage for event in events if event.has_tokens]
    if None in by_event:
        return [1] * count, reported[-1]
    so_far = [0, *(usage for usage in by_event if usage is not None)]
    return [max(0, after - before) for before, after in pairwise(so_far)], reported[-1]


def spread(times: Sequence[float], shares: Sequence[int], total: int) -> array[float]:
    """Return the times of ``total`` tokens of events at ``times``, by each event's share.

    The first event's tokens come at its time. The tokens of a later event are spread evenly over
    the time since the event before, because the server made them in that time.
    """
    tokens = array("d")
    sums = list(accumulate(shares if any(shares) else [1] * len(times)))
    tokens_by_event = [so_far * total / sums[-1] for so_far in sums]
    tokens.extend([times[0]] * min(total, max(1, int(tokens_by_event[0]))))
    for (before, after), (first, last) in zip(
        pairwise(times), pairwise(tokens_by_event), strict=True
    ):
        while len(tokens) + 1 <= last:
            part = (len(tokens) + 1 - first) / (last - first)
            tokens.append(before + (after - before) * part)
    return tokens


def no_tokens() -> Unusable:
    """Return the failure of a stream that ends before its first token."""
    return Unusable("no_tokens", "a request ended without a token: yield one at least")


def endless() -> Unusable:
    """Return the failure of a stream that doesn't end."""
    return Unusable(
        "endless_stream",
        f"a request gave more than {MOST_TOKENS:,} tokens: end the stream, as by `max_tokens`",
    )
