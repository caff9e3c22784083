"""The operators that a call runs: how often, on which tensors, how long, and from which line.

``torch.profiler`` counts and times the operators, and a device's kernels and copies. A second
profile of one call runs under a dispatch mode that marks each operator with the user's line. The
profiler's own stacks are no use: they name only the function, and make each call many times slower.

The comparison is pure. Counts are exact and are compared first. A time counts as changed only if
the sides' profiles don't overlap.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from perfci.clock import perf_counter
from perfci.errors import Unusable
from perfci.finding import Difference, Plain
from perfci.instruments import MARK, Recorded, RecordingScene, Words
from perfci.units import counted, format_difference

PLACE = 30
WHEN = "work"
RUNS = 5
"""Profiles per side. With fewer, times are not compared."""
_PROFILED_S = 0.02
"""A profile has as many calls as take this time, at most ``_MOST_CALLS``."""
_MOST_CALLS = 10
_MOST_ADDED_S = 2e-6
"""Most time that the profiler adds to an event. A call that took longer was interrupted."""
_MOST_EVENTS = 200_000
_MOST_OPERATORS = 3_000
_LONGEST_TEXT = 200
_LONGEST_SHOWN = 60
"""Characters of an operator's tensors in a text."""
_DISPATCH_MODE = "PythonDispatchMode"
_HIDDEN = ("ProfilerStep", "[memory]", "enumerate(DataLoader)#", _DISPATCH_MODE, MARK)
"""Beginnings of the names of events that aren't operators."""
_HASH_IN_NAME = re.compile(r"\b[a-z0-9]{32,}\b")
"""A hash in the name of generated code, which differs between the sides."""
_SHORT_DTYPES = {"c10::BFloat16": "bfloat16", "c10::Half": "float16", "float": "float32",
          "double": "float64", "long int": "int64", "int": "int32", "long": "int64"}  # fmt: skip
_LEAST_RATIO = 1.1
"""Least ratio of the sides' times of an operator that is reported."""
_LEAST_SHARE = 0.03
"""Least difference in time that is reported, as a share of a call's time."""
_VALUE_READS = frozenset({"aten::item", "aten::_local_scalar_dense"})
"""Operators that read one value of a tensor, and so wait for all work of the device."""

# In the worker.


def record(scene: RecordingScene) -> Recorded:
    """Profile some calls. Raises Unusable if there are too many events."""
    if "torch" not in sys.modules:
        return {"call_s": scene.call_s, "lines": [], "operators": [], "device": []}
    sites: dict[tuple[str, str], list[_Site]] = {} if scene.compiled else _sites(scene)
    calls = max(1, min(_MOST_CALLS, int(_PROFILED_S / scene.call_s) if scene.call_s else 1))
    profiler, took_s = _profiled(scene, calls)
    host, device = _events(profiler)
    longer_s = max(0.0, took_s - calls * scene.call_s)
    added_s = min(_MOST_ADDED_S, longer_s / max(1, len(host)))
    numbers: dict[_Site, int] = {}
    totals: dict[tuple[str, str, int], list[float]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for event in host:
        operator = (event.name, event.signature)
        own = sites.get(operator, [_NOWHERE])
        site = own[seen[operator] % len(own)]
        seen[operator] += 1
        number = numbers.setdefault(site, len(numbers)) if site[0] else -1
        total = totals.setdefault((*operator, number), [0.0, 0.0])
        total[0] += 1 / calls
        total[1] += max(0.0, event.own_s - added_s) / calls
    if len(totals) > _MOST_OPERATORS:
        raise Unusable("too_large", f"a call runs {len(totals):,} different operators")
    return {
        "call_s": scene.call_s,
        "lines": [list(site) for site in numbers],
        "operators": [[*key, round(count, 6), seconds] for key, (count, seconds) in totals.items()],
        "device": [[name, count / calls, total / calls] for name, count, total in device],
    }


def _profiled(scene: RecordingScene, calls: int) -> tuple[Any, float]:
    """Return torch's profiler of ``calls`` calls, and the time in s that they took.

    It has shapes, and the events of the device.
    """
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU]
    if scene.device is not None and scene.device.name.startswith("cuda"):  # type: ignore[attr-defined]
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities, record_shapes=True) as profiler:
        began = perf_counter()
        for _ in range(calls):
            scene.once()
        took_s = perf_counter() - began
    return profiler, took_s


_Site = tuple[str, int, str]
"""File, line, and function with the line's text."""
_NOWHERE: _Site = ("", 0, "")


class _OperatorEvent(NamedTuple):
    """A run of an operator. ``own_s`` is its time without the operators that ran inside it.

    ``parent`` is the index of the event inside which it ran, or -1.
    """

    name: str
    signature: str
    own_s: float
    parent: int


def _sites(scene: RecordingScene) -> dict[tuple[str, str], list[_Site]]:
    """Return the places that call each operator in one call, in order."""
    from torch.profiler import ProfilerActivity, profile

    alone = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
    with alone as profiler, scene.marked() as marks:
        scene.once()
    places = [
        (mark.file, mark.line, f"{mark.function}: {mark.text}"[:_LONGEST_TEXT]) for mark in marks
    ]
    events, _ = _events(profiler, hidden=())
    below: list[int] = [-1] * len(events)  # by event: the place of the first mark inside it
    above: list[int] = [-1] * len(events)  # by event: the place of the innermost mark around it
    for number, event in enumerate(events):
        if event.parent >= 0:
            above[number] = above[event.parent]
        if event.name.startswith(MARK):
            above[number] = int(event.name[len(MARK) :])
            upper = event.parent
            while upper >= 0 and below[upper] < 0:
                below[upper] = above[number]
                upper = events[upper].parent
    sites: dict[tuple[str, str], list[_Site]] = defaultdict(list)
    for number, event in enumerate(events):
        if not event.name.startswith(_HIDDEN) and not _is_double(events, event):
            # a region around Python code has a mark, too, which lies further above
            place = below[number] if below[number] >= 0 else above[number]
            sites[event.name, event.signature].append(places[place] if place >= 0 else _NOWHERE)
    return sites


def _is_double(events: Sequence[_OperatorEvent], event: _OperatorEvent) -> bool:
    """Return whether ``event`` is the dispatch mode's run of an operator.

    The operator itself is the event around the mode's, and is counted already.
    """
    for name in (MARK, _DISPATCH_MODE):
        if event.parent < 0 or not events[event.parent].name.startswith(name):
            return False
        event = events[event.parent]
    return event.parent >= 0


def _events(
    profiler: Any, hidden: tuple[str, ...] = _HIDDEN
) -> tuple[list[_OperatorEvent], list[tuple[str, int, float]]]:
    """Return the host's events in order, and the device's as (name, count, time in s).

    The own time of an event leaves out the events that ran inside it, on the same thread.
    """
    from torch.autograd import DeviceType

    raw = profiler.profiler.kineto_results.events()
    if len(raw) > _MOST_EVENTS:
        raise Unusable("too_large", f"a profile has {len(raw):,} events")
    device: dict[str, list[float]] = {}
    host = []
    for event in raw:
        name = _HASH_IN_NAME.sub("…", event.name())[:_LONGEST_TEXT]
        if event.device_type() != DeviceType.CPU:
            total = device.setdefault(name, [0, 0.0])
            total[0] += 1
            total[1] += event.duration_ns() / 1e9
        elif not event.is_async() and not name.startswith(hidden or "\0"):
            start = event.start_ns()
            host.append((event.start_thread_id(), start, -event.duration_ns(), name, event))
    host.sort(key=lambda item: item[:3])
    events: list[_OperatorEvent] = []
    stack: list[tuple[int, int, int]] = []  # thread, end, number
    for thread, start, minus, name, event in host:
        while stack and (stack[-1][0] != thread or start >= stack[-1][1]):
            stack.pop()
        parent = stack[-1][2] if stack else -1
        if parent >= 0:
            upper = events[parent]
            events[parent] = upper._replace(own_s=upper.own_s + minus / 1e9)
        events.append(_OperatorEvent(name, _signature(event), -minus / 1e9, parent))
        stack.append((thread, start - minus, len(events) - 1))
    return events, [(name, int(count), total) for name, (count, total) in device.items()]


def _signature(event: Any) -> str:
    """Return an operator's tensors in the form ``float32[8,64]``."""
    given = []
    for shape, kind in zip(event.shapes(), event.dtypes(), strict=False):
        if shape or kind not in {"Scalar", "ScalarList", ""}:
            listed = not all(isinstance(length, int) for length in shape)
            size = "…" if listed else ",".join(map(str, shape))
            given.append(f"{_SHORT_DTYPES.get(kind, kind)}[{size}]")
    return " ".join(given)[:_LONGEST_TEXT]


# In the parent. Pure.


class _Operator(NamedTuple):
    """An operator with its tensors, or a device's kernel. Both sides are matched by it."""

    name: str
    signature: str
    on_device: bool = False


_Line = tuple[str, str]
"""A file, and a function with a line's text."""


@dataclass(slots=True)
class _SideProfiles:
    """Profiles of one side. ``counts`` and own ``times`` have one value per profile, by operator.

    ``on_lines`` has each operator's mean count by line. ``numbers`` are the lines' numbers.
    """

    runs: int
    call_s: float
    counts: dict[_Operator, list[float]] = field(default_factory=dict)
    times: dict[_Operator, list[float]] = field(default_factory=dict)
    on_lines: dict[_Operator, Counter[_Line]] = field(default_factory=dict)
    numbers: dict[_Line, int] = field(default_factory=dict)

    def add(self, run: int, operator: _Operator, line: _Line, count: float, seconds: float) -> None:
        self.counts.setdefault(operator, [0.0] * self.runs)[run] += count
        self.times.setdefault(operator, [0.0] * self.runs)[run] += seconds
        self.on_lines.setdefault(operator, Counter())[line] += count / self.runs  # type: ignore[assignment]

    def count(self, operator: _Operator) -> float:
        return median(self.counts.get(operator, [0.0]))

    def all_of(self, operator: _Operator) -> float:
        """Return the count of an operator on whatever tensors."""
        return sum(
            self.count(each)
            for each in self.counts
            if (each.name, each.on_device) == (operator.name, operator.on_device)
        )

    def time(self, operator: _Operator) -> float:
        return median(self.times.get(operator, [0.0]))


def _side_profiles(recorded: Sequence[Recorded]) -> _SideProfiles:
    side = _SideProfiles(len(recorded), min(profile["call_s"] for profile in recorded))
    for run, profile in enumerate(recorded):
        for name, signature, number, count, seconds in profile["operators"]:
            file, at, text = profile["lines"][number] if number >= 0 else _NOWHERE
            side.add(run, _Operator(name, signature), (file, text), count, seconds)
            side.numbers.setdefault((file, text), at)
        for name, count, seconds in profile["device"]:
            side.add(run, _Operator(name, "", on_device=True), ("", "device"), count, seconds)
    return side


def differences(base: Sequence[Recorded], head: Sequence[Recorded]) -> Iterable[Difference]:
    """Yield one difference per line that calls operators more or less often, then slower operators.

    A line's difference is named after its heaviest operator, or after one that reads a value rather
    than those that compute the value. An operator that only moved to another line didn't change.
    """
    before, after = _side_profiles(base), _side_profiles(head)
    changed = _changed(before, after)
    by_line: dict[_Line, list[_Operator]] = defaultdict(list)
    for operator in changed:
        by_line[_line_that_moved(operator, before, after)].append(operator)
    for line, operators in by_line.items():
        yield _line_difference(line, operators, changed, before, after)
    yield from _slower(before, after, {operator.name for operator in changed})


def _changed(before: _SideProfiles, after: _SideProfiles) -> Mapping[_Operator, _Operator | None]:
    """Return operators whose count changed, each with the operator that it replaced, or None.

    The replaced one is the same operator on other tensors, called less often by as much. If a count
    differs between the profiles of a side, it counts as changed only if the sides' counts don't
    overlap.
    """
    more: list[_Operator] = []
    gone: list[_Operator] = []
    for operator in sorted({*before.counts, *after.counts}):
        if _apart(before.counts.get(operator), after.counts.get(operator)):
            rises = after.count(operator) > before.count(operator)
            (more if rises else gone).append(operator)
    changed: dict[_Operator, _Operator | None] = {}
    for operator in more:
        gained = after.count(operator) - before.count(operator)
        like = (
            old
            for old in gone
            if old.name == operator.name and before.count(old) - after.count(old) == gained
        )
        changed[operator] = old = next(like, None)
        if old:
            gone.remove(old)
    return changed | dict.fromkeys(gone)


def _apart(before: Sequence[float] | None, after: Sequence[float] | None) -> bool:
    low, high = sorted((before or [0.0], after or [0.0]), key=max)
    return max(low) < min(high) - 1e-9


def _line_that_moved(operator: _Operator, before: _SideProfiles, after: _SideProfiles) -> _Line:
    """Return the line whose calls of the operator changed most in the direction of all calls.

    A line that was edited is a new line and an old one. The new one is taken, if it calls as often.
    """
    was, now = (side.on_lines.get(operator, Counter[_Line]()) for side in (before, after))
    sign = 1.0 if after.count(operator) >= before.count(operator) else -1.0
    return max({*was, *now}, key=lambda line: (sign * (now[line] - was[line]), line in now, line))


def _line_difference(
    line: _Line,
    operators: Sequence[_Operator],
    changed: Mapping[_Operator, _Operator | None],
    before: _SideProfiles,
    after: _SideProfiles,
) -> Difference:
    gains = {
        each: sum(after.time(one) - before.time(one) for one in (each, changed[each]) if one)
        for each in operators
    }
    seconds = sum(gains.values())
    known = abs(seconds) >= _LEAST_SHARE * min(before.call_s, after.call_s)
    direction = 1 if seconds >= 0 else -1

    def weight(operator: _Operator) -> tuple[bool, float, _Operator]:
        more = after.count(operator) >= before.count(operator)
        is_read = operator.name in _VALUE_READS and more
        return is_read, direction * gains[operator], operator

    lead = max(operators, key=weight)
    counts = before.count(lead), after.count(lead)
    every = before.all_of(lead), after.all_of(lead)
    arguments: dict[str, Plain] = {
        "operator": lead.name,
        "before": every[0],
        "after": every[1],
        "seconds": gains[lead] if known else 0.0,
        "others": len(operators) - 1,
        "total": seconds if known else 0.0,
    }
    code = "operator-kernel" if lead.on_device else "operator-calls"
    if old := changed[lead]:
        code = "operator-tensors"
        calls = counts[1] - counts[0]
        arguments |= {"before": old.signature, "after": lead.signature, "calls": calls}
    elif counts != every:
        arguments |= {
            "tensors": lead.signature, "on_them_before": counts[0], "on_them_after": counts[1]
        }  # fmt: skip
    number = after.numbers.get(line) or before.numbers.get(line, 0)
    return Difference(
        "operators",
        code,
        arguments,
        seconds=seconds if known else 0.0,
        metric="latency",
        file=line[0],
        line=number,
    )


def _slower(
    before: _SideProfiles, after: _SideProfiles, reported: set[str]
) -> Iterator[Difference]:
    """Yield operators whose time changed while their count did not."""
    if min(before.runs, after.runs) < RUNS:
        return
    least = _LEAST_SHARE * min(before.call_s, after.call_s)
    for operator in sorted(before.times.keys() & after.times.keys()):
        old, new = before.time(operator), after.time(operator)
        low, high = sorted((old, new))
        if operator.name in reported or abs(new - old) < least or high < _LEAST_RATIO * low:
            continue
        if _apart(before.times[operator], after.times[operator]):
            ((line, _),) = after.on_lines[operator].most_common(1)
            yield Difference(
                "operators",
                "operator-time",
                {
                    "operator": operator.name,
                    "calls": after.count(operator),
                    "before": old,
                    "after": new,
                },
                seconds=new - old,
                metric="latency",
                file=line[0],
                line=after.numbers.get(line, 0),
                exact=False,
            )


def _of_group(seconds: float, total: float, others: int, what: str = "operator") -> str:
    """Return the operator's time, or the time of all operators of its line if there are others.

    A time of 0 may be noise, and isn't given.
    """
    if not others:
        return f", {format_difference(seconds, 's')}" if seconds else ""
    more = f", with {counted(others, f'other {what}')}"
    return f"{more}, {format_difference(total, 's')} in all" if total else more


def _calls(
    *, operator: str, before: float, after: float, seconds: float, others: int, total: float,
    tensors: str = "", on_them_before: float = 0.0, on_them_after: float = 0.0,
) -> str:  # fmt: skip
    """Return the counts of an operator, and if it runs on others, too, those on some tensors."""
    on_them = ""
    if tensors:
        on_them = f", {on_them_before:.4g} → {on_them_after:.4g} of them on {_short(tensors)}"
    return (
        f"`{operator}` {before:.4g} → {after:.4g} calls{on_them}{_of_group(seconds, total, others)}"
    )


def _short(tensors: str) -> str:
    return tensors if len(tensors) <= _LONGEST_SHOWN else f"{tensors[:_LONGEST_SHOWN]}…"


WORDS: Words = {
    "operator-calls": _calls,
    "operator-tensors": lambda *, operator, before, after, calls, seconds, others, total: (
        f"`{operator}` on {_short(after)}, before on {_short(before)}, {calls:.4g} calls"
        f"{_of_group(seconds, total, others)}"
    ),
    "operator-kernel": lambda *, operator, before, after, seconds, others, total: (
        f"on the device `{operator}` {before:.4g} → {after:.4g} times"
        f"{_of_group(seconds, total, others, 'kernel')}"
    ),
    "operator-time": "`{operator}` takes {before:s} → {after:s} in {calls:.4g} calls",
}
