"""In the worker: profiles of a few calls, and one of a call that knows the user's lines.

The second runs under a dispatch mode that names the line around each operator. A stack of the
profiler's own names the function alone, and makes each call many times slower.
"""

from __future__ import annotations

import contextlib
import linecache
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from perfci.errors import Unusable
from perfci.instruments import Recorded, Scene

_SECONDS = 0.02
_MOST_CALLS = 10
_MOST_EVENTS = 200_000
_MOST_OPERATORS = 3_000
_LONGEST = 200
_MARK = "perfci:"
_MODE = "PythonDispatchMode"
_HIDDEN = ("ProfilerStep", "[memory]", _MODE, _MARK)
_HASH = re.compile(r"\b[a-z0-9]{32,}\b")


class _Event(NamedTuple):
    """An operator's event, in the order of their starts: what it ran on, and how deep it lies."""

    name: str
    signature: str
    own_s: float
    parent: int


def record(scene: Scene) -> Recorded:
    """Profile some calls. Unusable where there are more events than can be looked at."""
    if "torch" not in sys.modules:
        return {"call_s": scene.call_s, "lines": [], "operators": [], "device": []}
    lines = [] if scene.compiled else _lines(scene)
    calls = max(1, min(_MOST_CALLS, int(_SECONDS / scene.call_s) if scene.call_s else 1))
    host, device = _events(scene.profiled(calls))
    where = _Where(lines)
    totals: dict[tuple[str, str, int], list[float]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for event in host:
        key = (event.name, event.signature)
        total = totals.setdefault((*key, where.line(key, seen[key])), [0.0, 0.0])
        seen[key] += 1
        total[0] += 1 / calls
        total[1] += event.own_s / calls
    if len(totals) > _MOST_OPERATORS:
        raise Unusable("too_large", f"a call runs {len(totals):,} different operators")
    return {
        "call_s": scene.call_s,
        "lines": where.places,
        "operators": [[*key, round(count, 6), seconds] for key, (count, seconds) in totals.items()],
        "device": [[name, count / calls, total / calls] for name, count, total in device],
    }


class _Where:
    """The places in the user's code, and which operator was called from which."""

    def __init__(self, lines: Sequence[tuple[tuple[str, str], tuple[str, int, str]]]) -> None:
        numbers: dict[tuple[str, int, str], int] = {}
        self._of: dict[tuple[str, str], list[int]] = defaultdict(list)
        for key, place in lines:
            self._of[key].append(numbers.setdefault(place, len(numbers)) if place[0] else -1)
        self.places = [list(place) for place in numbers]

    def line(self, key: tuple[str, str], seen: int) -> int:
        """Return the place of an operator's occurrence, as a call makes them in turn; -1: none."""
        found = self._of.get(key, ())
        return found[seen % len(found)] if found else -1


def _lines(scene: Scene) -> list[tuple[tuple[str, str], tuple[str, int, str]]]:
    """Return each operator of one call with its place: file, line and the function's name."""
    from torch.profiler import ProfilerActivity, profile

    places: list[tuple[str, int, str]] = []
    alone = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
    with alone as profiler, _naming(scene, places):
        scene.once()
    events, _ = _events(profiler, hidden=())
    below: list[int] = [-1] * len(events)  # the place of the first mark under each
    above: list[int] = [-1] * len(events)
    doubled: set[int] = set()
    for number, event in enumerate(events):
        if event.parent >= 0:
            above[number] = above[event.parent]
        if event.name.startswith(_MARK):
            above[number] = int(event.name[len(_MARK) :])
            upper = event.parent
            while upper >= 0 and below[upper] < 0:
                below[upper] = above[number]
                upper = events[upper].parent
        elif _is_double(events, event):
            doubled.add(number)
    return [
        ((event.name, event.signature), places[place] if place >= 0 else ("", 0, ""))
        for number, event in enumerate(events)
        if number not in doubled and not event.name.startswith(_HIDDEN)
        for place in [above[number] if above[number] >= 0 else below[number]]
    ]


def _is_double(events: Sequence[_Event], event: _Event) -> bool:
    """Whether it is the operator that the mode was asked for, and calls itself then."""
    for name in (_MARK, _MODE):
        if event.parent < 0 or not events[event.parent].name.startswith(name):
            return False
        event = events[event.parent]
    return event.parent >= 0


@contextlib.contextmanager
def _naming(scene: Scene, places: list[tuple[str, int, str]]) -> Iterator[None]:
    """Put a mark with the number of its place around each operator."""
    from torch.profiler import record_function
    from torch.utils._python_dispatch import TorchDispatchMode

    class Naming(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            file, line, name = scene.caller(sys._getframe(1))  # noqa: SLF001 (traceback's way is ten times slower)
            text = linecache.getline(_path(scene, file), line).strip() if file else ""
            places.append((file, line, f"{name}: {text}"[:_LONGEST]))
            with record_function(f"{_MARK}{len(places) - 1}"):
                return func(*args, **(kwargs or {}))

    with Naming():
        yield


def _path(scene: Scene, file: str) -> str:
    """Return where a file of the side's tree, or else of the benchmarks', lies."""
    own = f"{scene.order.root}/{file}"
    return own if linecache.getlines(own) else f"{scene.order.benchmark_root}/{file}"


def _events(
    profiler: Any, hidden: tuple[str, ...] = _HIDDEN
) -> tuple[list[_Event], list[tuple[str, int, float]]]:
    """Return the host's events by their starts, and the device's by name: count, and time in s."""
    from torch.autograd import DeviceType

    raw = profiler.profiler.kineto_results.events()
    if len(raw) > _MOST_EVENTS:
        raise Unusable("too_large", f"a profile has {len(raw):,} events")
    device: dict[str, list[float]] = {}
    host = []
    for one in raw:
        name = _HASH.sub("…", one.name())[:_LONGEST]
        if one.device_type() != DeviceType.CPU:
            total = device.setdefault(name, [0, 0.0])
            total[0] += 1
            total[1] += one.duration_ns() / 1e9
        elif not one.is_async() and not name.startswith(hidden or "\0"):
            start = one.start_ns()
            host.append((one.start_thread_id(), start, -one.duration_ns(), name, one))
    host.sort(key=lambda item: item[:3])
    found: list[_Event] = []
    stack: list[tuple[int, int, int]] = []  # thread, end, number
    for thread, start, minus, name, one in host:
        while stack and (stack[-1][0] != thread or start >= stack[-1][1]):
            stack.pop()
        parent = stack[-1][2] if stack else -1
        if parent >= 0:
            upper = found[parent]
            found[parent] = upper._replace(own_s=upper.own_s + minus / 1e9)
        found.append(_Event(name, _signature(one), -minus / 1e9, parent))
        stack.append((thread, start - minus, len(found) - 1))
    return found, [(name, int(count), total) for name, (count, total) in device.items()]


_SHORT = {"c10::BFloat16": "bfloat16", "c10::Half": "float16", "float": "float32",
          "double": "float64", "long int": "int64", "int": "int32", "long": "int64"}  # fmt: skip


def _signature(event: Any) -> str:
    """Return the tensors that an operator is given, as ``float32[8,64]``."""
    given = []
    for shape, kind in zip(event.shapes(), event.dtypes(), strict=False):
        if shape or kind not in {"Scalar", "ScalarList", ""}:
            size = ",".join(map(str, shape)) if all(isinstance(one, int) for one in shape) else "…"
            given.append(f"{_SHORT.get(kind, kind)}[{size}]")
    return " ".join(given)[:_LONGEST]
