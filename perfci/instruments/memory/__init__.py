"""Who holds the memory of a call at its peak, line by line, and what set-up left behind.

The profiler reports each allocation and release of torch, on the host and on a device, inside of
the operator that makes it; a dispatch mode puts a mark with the user's line around each operator.
A CUDA device's allocator says more (``snapshot``).
"""

from __future__ import annotations

import gc
import linecache
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple

from perfci.errors import Unusable
from perfci.instruments import Recorded, Scene, Words
from perfci.instruments.memory.snapshot import Stack, peak_of_device
from perfci.model.finding import Difference
from perfci.units import format_value

PLACE = 35
WHEN = "work"

_MARK = "perfci:"
_MOST_EVENTS, _MOST_ROWS, _LONGEST = 200_000, 1_000, 160
_LEAST_BYTES, _LEAST_SHARE = 64 << 10, 0.01
"""Less than this, or than this share of base's peak, is not worth a line."""

# In the worker.


class _Event(NamedTuple):
    """An allocation (or a release, below zero) of ``size`` bytes, made at a marked place."""

    when: int
    size: int
    address: int
    device: str
    place: int


def record(scene: Scene) -> Recorded:
    """Profile one call's allocations. Unusable where there are too many to be looked at."""
    if "torch" not in sys.modules:
        return {"peaks": [], "held": []}
    from torch.profiler import ProfilerActivity, profile

    held = _held(scene)
    places: list[tuple[str, str, int, str]] = []
    marking = nullcontext() if scene.compiled else _marking(scene, places)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler, marking:
        scene.once()
    results = profiler.profiler.kineto_results
    if len(results.events()) > _MOST_EVENTS:
        raise Unusable("too_large", f"a profile has {len(results.events()):,} events")
    events = sorted(_allocations(results.experimental_event_tree()))
    peaks = []
    for device in sorted({event.device for event in events}):
        held_at: dict[tuple[str, str, int, str], int] = defaultdict(int)
        for event in _at_peak([event for event in events if event.device == device]):
            held_at[places[event.place] if event.place >= 0 else _NOWHERE] += event.size
        most = sorted(held_at.items(), key=lambda item: -item[1])[:_MOST_ROWS]
        peaks.append([device, sum(held_at.values()), [[*place, size] for place, size in most]])
    by_stack = peak_of_device(scene)
    if by_stack is not None:
        peaks = [one for one in peaks if one[0] != "cuda"]
        peaks.append(device_row(by_stack, partial(_text, scene)))
    return {"peaks": peaks, "held": held}


def device_row(by_stack: Mapping[Stack, int], text: Callable[[str, int], str]) -> list[Any]:
    """Return the peak of a CUDA device as a recording has it: its functions are stacks."""
    held_at: dict[tuple[str, str, int, str], int] = defaultdict(int)
    for stack, size in by_stack.items():
        if stack:
            file, _, line = stack[0]
            names = " ← ".join(name for _, name, _ in stack)[:_LONGEST]
            held_at[file, names, line, text(file, line)] += size
        else:
            held_at[_NOWHERE] += size
    most = sorted(held_at.items(), key=lambda item: -item[1])[:_MOST_ROWS]
    return ["cuda", sum(by_stack.values()), [[*place, size] for place, size in most]]


_NOWHERE = ("", "", 0, "")


@contextmanager
def _marking(scene: Scene, places: list[tuple[str, str, int, str]]) -> Iterator[None]:
    """Put a mark with the number of its place (file, function, line, its text) on operators."""
    from torch.profiler import record_function
    from torch.utils._python_dispatch import TorchDispatchMode

    class Marking(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            file, line, function = scene.caller(sys._getframe(1))  # noqa: SLF001 (there is no other way)
            places.append((file, function[:_LONGEST], line, _text(scene, file, line)))
            with record_function(f"{_MARK}{len(places) - 1}"):
                return func(*args, **(kwargs or {}))

    with Marking():
        yield


def _text(scene: Scene, file: str, line: int) -> str:
    found = (
        linecache.getline(f"{root}/{file}", line)
        for root in (scene.order.root, scene.order.benchmark_root)
    )
    return next(filter(None, found), "").strip()[:_LONGEST]


def _allocations(events: Iterable[Any]) -> Iterator[_Event]:
    """Yield what the tree of a profile's events allocated and released."""
    waiting = [(event, -1) for event in events]
    while waiting:
        event, place = waiting.pop()
        if event.name.startswith(_MARK):
            place = int(event.name[len(_MARK) :])
        if event.tag.name == "Allocation":
            made = event.extra_fields
            device = str(made.device).partition(":")[0]
            yield _Event(event.start_time_ns, made.alloc_size, made.ptr, device, place)
        waiting += [(child, place) for child in event.children]


def _at_peak(events: Sequence[_Event]) -> Iterable[_Event]:
    """Return the allocations that were held when most was; what was there before is not known."""
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
    live: dict[int, _Event] = {}
    for event in events[: peak + 1]:
        if event.size > 0:
            live[event.address] = event
        else:
            live.pop(event.address, None)
    return live.values()


def _held(scene: Scene) -> list[list[Any]]:
    """Return the parameters and buffers of live modules: name, device, place and bytes."""
    found: dict[tuple[str, str, str, int], int] = defaultdict(int)
    seen: set[int] = set()
    for module in _modules():
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):  # noqa: SLF001 (without its children's)
            if tensor is None or id(tensor) in seen:
                continue
            seen.add(id(tensor))
            kind = type(module)
            key = (f"{kind.__name__}.{name}"[:_LONGEST], tensor.device.type)
            found[(*key, *_where_set(scene, kind, name))] += tensor.nbytes
    most = sorted(found.items(), key=lambda item: -item[1])
    return [[*key, size] for key, size in most[:_MOST_ROWS]]


def _modules() -> list[Any]:
    """Return all modules that are alive, those of a frozen heap too."""
    from torch.nn import Module

    frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    found = [one for one in gc.get_objects() if isinstance(one, Module)]
    if frozen:
        gc.freeze()
    return found


def _where_set(scene: Scene, kind: type, name: str) -> tuple[str, int]:
    """Return the line of the user's class that sets what is called ``name``, or of the class."""
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
    found = (number for number, line in enumerate(lines) if number > first and sets.search(line))
    return file, next(found, first) + 1


# In the parent. Pure.


def differences(base: Sequence[Recorded], head: Sequence[Recorded]) -> Iterator[Difference]:
    """Yield the functions that hold more or less at a call's peak, and what set-up's modules do."""
    yield from _of_peaks(base[0], head[0])
    yield from _of_modules(base[0], head[0])


def _of_peaks(base: Recorded, head: Recorded) -> Iterator[Difference]:
    before, after = (
        {device: (total, rows) for device, total, rows in one["peaks"]} for one in (base, head)
    )
    for device in before.keys() & after.keys():
        (was_total, was_rows), (now_total, now_rows) = before[device], after[device]
        was, now = _by_function(was_rows), _by_function(now_rows)
        grown = now_total - was_total
        for function in was.keys() | now.keys():
            held = (sum(side.get(function, {}).values()) for side in (was, now))
            one, other = held
            gain = other - one
            # what moved into another function is no gain
            if abs(gain) >= _least(was_total) and gain * grown > 0 and 2 * abs(grown) >= abs(gain):
                yield _difference(
                    "memory-peak", device, gain, function[0],
                    _line_that_moved(function, was, now_rows, gain),
                    function=function[1] or "the call", before=one, after=other,
                )  # fmt: skip


def _of_modules(base: Recorded, head: Recorded) -> Iterator[Difference]:
    was, now = (
        {(name, device): (file, line, size) for name, device, file, line, size in one["held"]}
        for one in (base, head)
    )
    least = _least(sum(size for _, _, size in was.values()))
    for name, device in was.keys() | now.keys():
        key = (name, device)
        before, after = (side[key][2] if key in side else 0 for side in (was, now))
        if abs(after - before) >= least:
            file, line, _ = now.get(key, ("", 0, 0))
            yield _difference(
                "memory-held", device, after - before, file, line,
                name=name, before=before, after=after,
            )  # fmt: skip


def _least(of: int) -> float:
    return max(_LEAST_BYTES, _LEAST_SHARE * of)


def _difference(
    code: str, device: str, gain: int, file: str, line: int, **arguments: str | int
) -> Difference:
    where = "host" if device == "cpu" else "device"
    return Difference(
        "memory", code, {**arguments, "where": where},
        bytes=gain, metric=f"peak_{where}_memory", file=file, line=line,
    )  # fmt: skip


_ByText = Mapping[tuple[str, str], Mapping[str, int]]


def _by_function(rows: Sequence[Sequence[Any]]) -> _ByText:
    """Return the bytes by function (file, name) and the text of its lines."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for file, function, _, text, size in rows:
        of = found.setdefault((file, function), {})
        of[text] = of.get(text, 0) + size
    return found


def _line_that_moved(
    function: tuple[str, str], was: _ByText, rows: Sequence[Sequence[Any]], gain: float
) -> int:
    """Return the line of head's function that moved most the way of ``gain``, matched by text."""
    before = was.get(function, {})
    here = {
        line: (size - before.get(text, 0)) * gain
        for file, name, line, text, size in rows
        if (file, name) == function
    }
    return max(here, key=lambda line: here[line]) if here else 0


def _sizes(before: int, after: int) -> str:
    return f"{format_value(before, 'bytes')} → {format_value(after, 'bytes')}"


def _at_a_peak(*, function: str, before: int, after: int, where: str) -> str:
    return f"`{function}` holds {_sizes(before, after)} of the {where}'s memory at a call's peak"


def _all_the_time(*, name: str, before: int, after: int, where: str) -> str:
    return f"`{name}` takes {_sizes(before, after)} of the {where}'s memory"


WORDS: Words = {"memory-peak": _at_a_peak, "memory-held": _all_the_time}
