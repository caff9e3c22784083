"""The lines that hold a call's memory at its peak, and the modules that set-up leaves behind.

The profiler reports each allocation and release of torch, on the host and on a device, inside of
the operator that makes it. A dispatch mode marks each operator with the user's line, but doesn't
see the callers of compiled code.
"""

from __future__ import annotations

import gc
import linecache
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from perfci.errors import Unusable
from perfci.finding import Difference, Plain
from perfci.instruments import (
    MARK,
    CallMark,
    Recorded,
    RecordingScene,
    SourceLine,
    Words,
    moved_functions,
)

PLACE = 35
WHEN = "work"

_MOST_EVENTS, _MOST_ROWS, _LONGEST_TEXT = 200_000, 1_000, 160
_LEAST_BYTES, _LEAST_SHARE = 64 << 10, 0.01
"""Least reported difference: in bytes, and as a share of base's peak. The larger one counts."""
_NOWHERE = SourceLine("", "", 0, "")


class _Allocation(NamedTuple):
    """An allocation of ``size`` bytes, or a release if ``size`` is below zero.

    ``place`` is the number of the operator's mark, or -1.
    """

    when: int
    size: int
    address: int
    device: str
    place: int


def record(scene: RecordingScene) -> Recorded:
    """Profile one call's allocations. Raises Unusable if there are too many."""
    if "torch" not in sys.modules:
        return {"peaks": [], "held": []}
    from torch.profiler import ProfilerActivity, profile

    held = _held(scene)
    marking: AbstractContextManager[list[CallMark]] = (
        nullcontext([]) if scene.compiled else scene.marked()
    )
    with (
        profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler,
        marking as marks,
    ):
        scene.once()
    results = profiler.profiler.kineto_results
    if len(results.events()) > _MOST_EVENTS:
        raise Unusable("too_large", f"a profile has {len(results.events()):,} events")
    events = sorted(_allocations(results.experimental_event_tree()))
    peaks = []
    for device in sorted({event.device for event in events}):
        held_at: Counter[SourceLine] = Counter()
        for event in _at_peak([event for event in events if event.device == device]):
            held_at[_line(marks[event.place]) if event.place >= 0 else _NOWHERE] += event.size
        most = held_at.most_common(_MOST_ROWS)
        peaks.append([device, [[*line, size] for line, size in most]])
    return {"peaks": peaks, "held": held}


def _line(mark: CallMark) -> SourceLine:
    return SourceLine(
        mark.file, mark.function[:_LONGEST_TEXT], mark.line, mark.text[:_LONGEST_TEXT]
    )


def _allocations(events: Iterable[Any]) -> Iterator[_Allocation]:
    """Yield the allocations and releases in a tree of a profile's events."""
    waiting = [(event, -1) for event in events]
    while waiting:
        event, place = waiting.pop()
        if event.name.startswith(MARK):
            place = int(event.name[len(MARK) :])
        if event.tag.name == "Allocation":
            made = event.extra_fields
            device = str(made.device).partition(":")[0]
            yield _Allocation(event.start_time_ns, made.alloc_size, made.ptr, device, place)
        waiting += [(child, place) for child in event.children]


def _at_peak(events: Sequence[_Allocation]) -> Iterable[_Allocation]:
    """Return the allocations of a call that were held at its peak."""
    sizes: dict[int, int] = {}
    total, most, peak = 0, 0, -1
    for number, event in enumerate(events):
        if event.size > 0:
            sizes[event.address] = event.size
            total += event.size
        else:
            total -= sizes.pop(event.address, 0)
        if total > most:
            most, peak = total, number
    live: dict[int, _Allocation] = {}
    for event in events[: peak + 1]:
        if event.size > 0:
            live[event.address] = event
        else:
            live.pop(event.address, None)
    return live.values()


def _held(scene: RecordingScene) -> list[list[Any]]:
    """Return the parameters and buffers of live modules: name, device, file, line and bytes."""
    sizes: Counter[tuple[str, str, str, int]] = Counter()
    seen: set[int] = set()
    for module in _modules():
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):  # noqa: SLF001 (without its children's)
            if tensor is None or id(tensor) in seen:
                continue
            seen.add(id(tensor))
            kind = type(module)
            key = (f"{kind.__name__}.{name}"[:_LONGEST_TEXT], tensor.device.type)
            sizes[(*key, *_where_set(scene, kind, name))] += tensor.nbytes
    return [[*key, size] for key, size in sizes.most_common(_MOST_ROWS)]


def _modules() -> list[Any]:
    """Return all live modules, including those of a frozen heap."""
    from torch.nn import Module

    frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    # not isinstance, which fails for a weak proxy whose object is gone
    modules = [item for item in gc.get_objects() if issubclass(type(item), Module)]
    if frozen:
        gc.freeze()
    return modules


def _where_set(scene: RecordingScene, kind: type, name: str) -> tuple[str, int]:
    """Return the file and line of the user's class that sets ``name``, or the class's own line."""
    source = getattr(sys.modules.get(kind.__module__), "__file__", None)
    file = scene.place(source) if isinstance(source, str) else ""
    if not file or not isinstance(source, str):
        return "", 0
    lines = linecache.getlines(source)
    begin = re.compile(rf"\s*class {re.escape(kind.__name__)}\b")
    sets = re.compile(rf"\bself\.{re.escape(name)}\b[^=]*=[^=]|\w\([\"']{re.escape(name)}[\"']")
    first = next((number for number, line in enumerate(lines) if begin.match(line)), -1)
    if first < 0:
        return file, 0
    set_at = (number for number, line in enumerate(lines) if number > first and sets.search(line))
    return file, next(set_at, first) + 1


# In the parent. Pure.


def differences(base: Sequence[Recorded], head: Sequence[Recorded]) -> Iterator[Difference]:
    """Yield the functions and modules that hold more or less memory in head than in base."""
    yield from _peak_differences(base[0], head[0])
    yield from _module_differences(base[0], head[0])


def _peak_differences(base: Recorded, head: Recorded) -> Iterator[Difference]:
    before, after = (
        {
            device: {SourceLine(*line): size for *line, size in rows}
            for device, rows in side["peaks"]
        }
        for side in (base, head)
    )
    for device in before.keys() & after.keys():
        least = _least_gain(sum(before[device].values()))
        for function in moved_functions([before[device]], [after[device]]):
            if abs(function.gain) >= least:
                yield _difference(
                    "memory-peak", device, function.gain, function.file, function.line,
                    function=function.name or "the call",
                    before=function.before[0], after=function.after[0],
                )  # fmt: skip


def _module_differences(base: Recorded, head: Recorded) -> Iterator[Difference]:
    was, now = (
        {(name, device): (file, line, size) for name, device, file, line, size in side["held"]}
        for side in (base, head)
    )
    least = _least_gain(sum(size for _, _, size in was.values()))
    for name, device in was.keys() | now.keys():
        key = (name, device)
        before, after = (side[key][2] if key in side else 0 for side in (was, now))
        if abs(after - before) >= least:
            file, line, _ = now.get(key, ("", 0, 0))
            yield _difference(
                "memory-held", device, after - before, file, line,
                name=name, before=before, after=after,
            )  # fmt: skip


def _least_gain(base_bytes: float) -> float:
    return max(_LEAST_BYTES, _LEAST_SHARE * base_bytes)


def _difference(
    code: str, device: str, gain: float, file: str, line: int, **arguments: Plain
) -> Difference:
    where = "host" if device == "cpu" else "device"
    return Difference(
        "memory", code, {**arguments, "where": where},
        bytes=gain, metric=f"peak_{where}_memory", file=file, line=line,
    )  # fmt: skip


WORDS: Words = {
    "memory-peak": (
        "`{function}` holds {before:bytes} → {after:bytes} of the {where}'s memory at a call's peak"
    ),
    "memory-held": "`{name}` takes {before:bytes} → {after:bytes} of the {where}'s memory",
}
