"""Pure: both sides of a round live at once, and need room for both."""

from __future__ import annotations

from dataclasses import replace

from perfci.record.case import Failure

KIND = "no_room_for_both"
_KINDS = frozenset({"OutOfMemoryError", "MemoryError", "out_of_memory"})
_WORDS = ("out of memory", "alloc_failed", "can't allocate memory")
"""Of CUDA, of its libraries, and of torch on the host, in RuntimeErrors that have no name."""


def ran_out_of_memory(failure: Failure) -> bool:
    """Say whether it failed for memory, the device's or the host's."""
    said = failure.message.lower()
    return failure.kind in _KINDS or any(word in said for word in _WORDS)


def no_room_for_both(failure: Failure, side: str) -> Failure:
    """Return ``side``'s failure where ``failure`` came up beside the other side, and not alone.

    Which side got the memory first is the luck of the order: neither is to blame.
    """
    first_line = next(iter(failure.message.strip().splitlines()), failure.kind)
    return replace(
        failure,
        side=side,
        kind=KIND,
        message=f"both sides don't fit at once: beside the other one {failure.side} failed in "
        f"{failure.stage}, and alone it ran: {first_line}\n"
        "Make the benchmark smaller (its batch, say), or measure where there is more memory: a "
        "round needs it for both sides.",
    )
