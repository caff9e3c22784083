"""The number and the times of a request's tokens, from its events.

An event may carry several tokens, and how many is known from the stream's ``usage`` or from a
tokenizer. The tokens of an event share the time since the event before.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate, pairwise
from typing import Any, Literal

from perfci.api.serving.events import StreamEvent
from perfci.errors import Unusable

TokenRule = Literal["usage", "events"] | Callable[[str], Any] | None
"""A function is a tokenizer. None: the usage if the stream reports it, otherwise the events."""
MOST_TOKENS = 1_000_000
"""Most tokens of a request. Without a limit, an endless stream would take all memory."""


class TokenCounter:
    """Counts the tokens of requests by a rule. Raises Unusable if the rule can't be followed."""

    def __init__(self, rule: TokenRule) -> None:
        self._rule = rule

    def token_times(self, times: Sequence[float], events: Sequence[StreamEvent]) -> array[float]:
        """Return the times of a request's tokens, from its events or, without any, its items."""
        if not events:
            return array("d", times)
        shares, total = self._tokenized(events) if callable(self._rule) else self._reported(events)
        if total > MOST_TOKENS:
            raise endless()
        if total < 1:
            raise no_tokens()
        carrying = zip(times, events, strict=True)
        return spread([time for time, event in carrying if event.has_tokens], shares, total)

    def _reported(self, events: Sequence[StreamEvent]) -> tuple[list[int], int]:
        """Return each event's share of the tokens, and their number, by what the stream says.

        Some servers report the usage with each event. From others, only the total is known, and the
        events have equal shares.
        """
        count = sum(event.has_tokens for event in events)
        reported = [event.usage for event in events if event.usage is not None]
        if self._rule == "events" or (self._rule is None and not reported):
            return [1] * count, count
        if not reported:
            raise Unusable(
                "no_usage",
                "the stream reports no `usage` with its `completion_tokens`: send "
                '"stream_options": {"include_usage": true}, or count by tokens="events" or a '
                "tokenizer",
            )
        by_event = [event.usage for event in events if event.has_tokens]
        if None in by_event:
            return [1] * count, reported[-1]
        so_far = [0, *(usage for usage in by_event if usage is not None)]
        return [max(0, after - before) for before, after in pairwise(so_far)], reported[-1]

    def _tokenized(self, events: Sequence[StreamEvent]) -> tuple[list[int], int]:
        known = [event.text for event in events if event.text]
        if len(known) < sum(event.has_tokens for event in events):
            raise Unusable(
                "no_text",
                "a tokenizer can't count an event whose text isn't known, such as a tool's call: "
                'count by tokens="usage" or "events"',
            )
        return [self._count(text) for text in known], self._count("".join(known))

    def _count(self, text: str) -> int:
        assert callable(self._rule)  # noqa: S101 (only called with the rule of a tokenizer)
        tokens = self._rule(text)
        count = len(tokens) if isinstance(tokens, Collection) else tokens
        if type(count) is not int or count < 0:
            what = f"the tokenizer returned {repr(tokens)[:80]}: return the tokens or their number"
            raise Unusable("bad_tokenizer", what)
        return count


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
