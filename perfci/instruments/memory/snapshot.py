"""Who holds a CUDA device's memory at its peak, stack by stack, by the history of its allocator.

The profiler doesn't see who called what is compiled; the allocator keeps the Python stack of each
allocation. Its interface is private to torch: where it isn't there, the profiler's rows stand.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perfci.errors import Unusable
from perfci.instruments import Scene

Stack = tuple[tuple[str, str, int], ...]
"""Files, functions and lines of the user's, the innermost first."""
_MOST_EVENTS, _MOST_FRAMES = 200_000, 6


def peak_of_device(scene: Scene) -> dict[Stack, int] | None:
    """Return the bytes by stack at the peak of one call; None where there is no such history."""
    name = getattr(scene.device, "name", "")
    if not name.startswith("cuda"):
        return None
    from torch import cuda

    history = getattr(cuda.memory, "_record_memory_history", None)
    snapshot = getattr(cuda.memory, "_snapshot", None)
    if not (history and snapshot and "context" in inspect.signature(history).parameters):
        return None  # of a torch before 2.1
    if cuda.get_allocator_backend() != "native":
        return None
    history(None)  # forgets what it recorded for others
    history("all", context="alloc", stacks="python", max_entries=_MOST_EVENTS)
    try:
        scene.once()
        traces = snapshot()["device_traces"]
    finally:
        history(None)
    index = int(name.partition(":")[2] or cuda.current_device())
    trace = traces[index] if index < len(traces) else []
    if len(trace) >= _MOST_EVENTS:
        raise Unusable("too_large", f"a call allocates or frees memory {len(trace):,} times")
    return held_at_peak(trace, scene.place)


def held_at_peak(
    trace: Sequence[Mapping[str, Any]], place: Callable[[str], str]
) -> dict[Stack, int]:
    """Return the bytes by stack that were allocated in ``trace`` and held when most was.

    ``place`` returns the user's path of a file, or nothing. Memory counts as held until it is asked
    to be freed, as in torch's ``max_memory_allocated``; what was there before has no stack here,
    and counts where it is freed.
    """
    peak = _peak(trace)
    live: dict[int, Mapping[str, Any]] = {}
    for event in trace[:peak]:
        if event["action"] == "alloc":
            live[event["addr"]] = event
        elif event["action"] in {"free_requested", "free_completed"}:
            live.pop(event["addr"], None)
    held: dict[Stack, int] = {}
    for event in live.values():
        stack = _stack(event.get("frames", ()), place)
        held[stack] = held.get(stack, 0) + event["size"]
    return held


def _peak(trace: Sequence[Mapping[str, Any]]) -> int:
    """Return how many events there are up to the one that leaves most memory held."""
    level, most, peak = 0, 0, 0
    requested: set[int] = set()
    for number, event in enumerate(trace, 1):
        action = event["action"]
        if action == "alloc":
            level += event["size"]
        elif action == "free_requested":
            requested.add(event["addr"])
            level -= event["size"]
        elif action == "free_completed" and event["addr"] in requested:
            requested.remove(event["addr"])
        elif action == "free_completed":
            level -= event["size"]
        if level >= most:  # of equal ones the last: of what is held there more is known
            most, peak = level, number
    return peak


def _stack(frames: Sequence[Mapping[str, Any]], place: Callable[[str], str]) -> Stack:
    found = ((place(one["filename"]), one["name"], one["line"]) for one in frames)
    return tuple(one for one in found if one[0])[:_MOST_FRAMES]
