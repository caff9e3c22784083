"""The number and the times of a request's tokens, from its events.

An event may carry several tokens, and how many is known from the stream's ``usage``. The tokens of
an event share the time since the event before.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise

from perfci.api.serving.events import StreamEvent
from perfci.errors import Unusable

MOST_TOKENS = 1_000_000
"""Most tokens of a request. Without a limit, an endless stream would take all memory."""


def token_times(times: Sequence[float], events: Sequence[StreamEvent]) -> array[float]:
    """Return the times of a request's tokens, from its events or, without any, its items.

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
    reached, before = 0.0, None
    for time, share in zip(times, sums, strict=True):
        until = share * total / sums[-1]
        if before is None:
            tokens.extend([time] * min(total, max(1, int(until))))
        while before is not None and len(tokens) + 1 <= until:
            part = (len(tokens) + 1 - reached) / (until - reached)
            tokens.append(before + (time - before) * part)
        reached, before = until, time
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
