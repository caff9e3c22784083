"""A Chrome trace of a few calls, which Perfetto and chrome://tracing open. On demand."""

from __future__ import annotations

import base64
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from perfci.errors import Unusable
from perfci.instruments import Recorded, RecordingScene

PLACE = 95
WHEN = "work"
ON_DEMAND = True

_MOST_CALLS, _MOST_EVENTS, _LONGEST = 10, 50_000, 200
MOST_BYTES = 64 << 20
"""Largest trace that is unpacked. There is a limit because a worker may send anything."""


def record(scene: RecordingScene) -> Recorded:
    """Profile as many calls as fit into a trace. Unusable if a single call is too large.

    The trace is written here, because the profiler's own file isn't valid JSON if a name has a
    quotation mark (seen with torch 2.13).
    """
    events = _events(scene, 1)
    if len(events) > _MOST_EVENTS:
        raise Unusable(
            "too_large",
            f"the trace of a call has {len(events):,} events, more than {_MOST_EVENTS:,}",
        )
    events = _events(scene, min(_MOST_CALLS, max(1, _MOST_EVENTS // max(1, len(events)))))
    packed = zlib.compress(json.dumps({"traceEvents": list(_rows(events))}).encode())
    return {"trace": base64.b64encode(packed).decode()}


def _events(scene: RecordingScene, calls: int) -> Sequence[Any]:
    if "torch" not in sys.modules:
        return ()  # importing the profiler would import torch, and take seconds
    events: Sequence[Any] = scene.profiled(calls).profiler.kineto_results.events()
    return events


def _rows(events: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the events in the Trace Event Format, in µs. The host and each device is a process."""
    first_ns = min((event.start_ns() for event in events), default=0)
    places: dict[str, int] = {}
    for event in events:
        device = event.device_type().name
        on_host = device == "CPU"
        place = "host" if on_host else f"{device.lower()}:{event.device_index()}"
        if place not in places:
            places[place] = len(places) + 1
            named = {"name": "process_name", "args": {"name": place}}
            yield {"ph": "M", "pid": places[place], "tid": 0, **named}
        yield {
            "ph": "X",
            "name": event.name()[:_LONGEST],
            "pid": places[place],
            "tid": event.start_thread_id() if on_host else event.device_resource_id(),
            "ts": (event.start_ns() - first_ns) / 1e3,
            "dur": event.duration_ns() / 1e3,
            "args": {"shapes": str(event.shapes())[:_LONGEST]} if event.shapes() else {},
        }


def trace_text(recorded: Recorded) -> str:
    """Return the recorded trace. Raises ValueError if it is too large, or isn't a trace."""
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(base64.b64decode(recorded["trace"], validate=True), MOST_BYTES)
    except (KeyError, TypeError, zlib.error) as error:
        raise ValueError("it is no packed text") from error
    if not unpacking.eof:
        raise ValueError(f"it is cut short, or has more than {MOST_BYTES >> 20} MiB")
    whole: Any = json.loads(text)
    if not (isinstance(whole, dict) and isinstance(whole.get("traceEvents"), list)):
        raise ValueError("it has no events")  # noqa: TRY004 (the sender's fault, not the caller's)
    return json.dumps(whole, separators=(",", ":"), allow_nan=False)
