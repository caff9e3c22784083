"""The operators that a call runs: how often, on which tensors, how long, and from which line.

``torch.profiler`` counts and times the operators, and a device's kernels and copies. A second
profile of one call runs under a dispatch mode that marks each operator with the user's line. The
profiler's own stacks are no use: they name only the function, and make each call many times slower.

The comparison is pure. Counts are exact and are compared first. A time counts as changed only if
the sides' profiles don't overlap.
"""

from __future__ import annotations

import difflib
import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from perfci.errors import Unusable
from perfci.instruments import MARK, Recorded, RecordingScene, Words
from perfci.model.finding import Difference, Plain
from perfci.units import counted, format_value

PLACE = 30
WHEN = "work"
RUNS = 5
"""Profiles per side. With fewer, times are not compared."""
_PROFILED_S = 0.02
"""A profile has as many calls as take this time, at most ``_MOST_CALLS``."""
_MOST_CALLS = 10
_MOST_EVENTS = 200_000
_MOST_OPERATORS = 3_000
_LONGEST_TEXT = 200
_DISPATCH_MODE = "PythonDispatchMode"
_HIDDEN = ("ProfilerStep", "[memory]", _DISPATCH_MODE, MARK)
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
_LEAST_LIKENESS = 0.4
"""Likeness from which on a comprehension's line counts as an edit of a line outside of it."""


def record(scene: RecordingScene) -> Recorded:
    """Profile some calls. Raises Unusable if there are too many events."""
    if "torch" not in sys.modules:
        return {"call_s": scene.call_s, "lines": [], "operators": [], "device": []}
    lines = [] if scene.compiled else _lines(scene)
    calls = max(1, min(_MOST_CALLS, int(_PROFILED_S / scene.call_s) if scene.call_s else 1))
    host, device = _events(scene.profiled(calls))
    sites = _CallSites(lines)
    totals: dict[tuple[str, str, int], list[float]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for event in host:
        key = (event.name, event.signature)
        total = totals.setdefault((*key, sites.number(key, seen[key])), [0.0, 0.0])
        seen[key] += 1
        total[0] += 1 / calls
        total[1] += event.own_s / calls
    if len(totals) > _MOST_OPERATORS:
        raise Unusable("too_large", f"a call runs {len(totals):,} different operators")
    return {
        "call_s": scene.call_s,
        "lines": sites.lines,
        "operators": [[*key, round(count, 6), seconds] for key, (count, seconds) in totals.items()],
        "device": [[name, count / calls, total / calls] for name, count, total in device],
    }


class _OperatorEvent(NamedTuple):
    """A run of an operator. ``own_s`` is its time without the operators that ran inside it.

    ``parent`` is the index of the event inside which it ran, or -1.
    """

    name: str
    signature: str
    own_s: float
    parent: int


class _CallSites:
    """Numbers the places in the user's code, and knows from which place each operator was called.

    ``lines`` has the places by number.
    """

    def __init__(self, lines: Sequence[tuple[tuple[str, str], tuple[str, int, str]]]) -> None:
        numbers: dict[tuple[str, int, str], int] = {}
        self._numbers: dict[tuple[str, str], list[int]] = defaultdict(list)
        for key, site in lines:
            self._numbers[key].append(numbers.setdefault(site, len(numbers)) if site[0] else -1)
        self.lines = [list(site) for site in numbers]

    def number(self, key: tuple[str, str], occurrence: int) -> int:
        """Return the site's number for an operator's occurrence in a call, or -1."""
        numbers = self._numbers.get(key, ())
        return numbers[occurrence % len(numbers)] if numbers else -1


def _lines(scene: RecordingScene) -> list[tuple[tuple[str, str], tuple[str, int, str]]]:
    """Return each operator of one call with its place: file, line, and function with text."""
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
    doubled: set[int] = set()  # events that ran inside the dispatch mode
    for number, event in enumerate(events):
        if event.parent >= 0:
            above[number] = above[event.parent]
        if event.name.startswith(MARK):
            above[number] = int(event.name[len(MARK) :])
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
            size = (
                ",".join(map(str, shape))
                if all(isinstance(length, int) for length in shape)
                else "…"
            )
            given.append(f"{_SHORT_DTYPES.get(kind, kind)}[{size}]")
    return " ".join(given)[:_LONGEST_TEXT]


class _OperatorKey(NamedTuple):
    """An operator with its tensors and the line that calls it. Both sides are matched by it."""

    name: str
    signature: str
    file: str
    text: str


@dataclass(slots=True)
class _SideProfiles:
    """Profiles of one side. ``counts`` and own ``times`` have one value per profile, by operator.

    ``lines`` has line numbers by file and text.
    """

    runs: int
    call_s: float
    counts: dict[_OperatorKey, list[float]] = field(default_factory=dict)
    times: dict[_OperatorKey, list[float]] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)

    def count(self, key: _OperatorKey) -> float:
        return statistics.median(self.counts.get(key, [0.0]))

    def time(self, key: _OperatorKey) -> float:
        return statistics.median(self.times.get(key, [0.0]))


def differences(base: Sequence[Recorded], head: Sequence[Recorded]) -> Iterable[Difference]:
    """Yield one difference per line, named after its heaviest operator.

    If a line has an operator that reads a value, the difference is named after that operator rather
    than those that compute the value. Operators of a line that was edited or replaced are counted
    for the line that it became.
    """
    before, after = _side_profiles(base), _side_profiles(head)
    changed = dict(_changed(before, after))
    by_place: dict[tuple[str, str], list[_OperatorKey]] = defaultdict(list)
    for key in changed:
        by_place[_current_place((key.file, key.text), before, after)].append(key)
    for place, keys in by_place.items():
        yield _line_difference(place, keys, changed, before, after)
    yield from _slower(before, after, {key.name for key in changed})


def _changed(
    before: _SideProfiles, after: _SideProfiles
) -> Iterator[tuple[_OperatorKey, _OperatorKey | None]]:
    """Yield operators whose count changed, each with the operator that it replaced, or None.

    The replaced one is the same operator on other tensors, or on a line that was edited. An
    operator that only moved to another line didn't change. If a count differs between the profiles
    of a side, it counts as changed only if the sides' counts don't overlap.
    """
    keys = {*before.counts, *after.counts}
    apart = {key for key in keys if _apart(before.counts.get(key), after.counts.get(key))}
    total: dict[tuple[str, str], float] = defaultdict(float)
    for key in keys:
        total[key[:2]] += round(after.count(key) - before.count(key), 6)
    more: dict[str, list[_OperatorKey]] = defaultdict(list)
    fewer: dict[str, list[_OperatorKey]] = defaultdict(list)
    edited: dict[tuple[str, str, str], list[_OperatorKey]] = defaultdict(list)
    for key in sorted(apart):
        change = after.count(key) - before.count(key)
        if total[key[:2]] * change > 0:
            (more if change > 0 else fewer)[key.name].append(key)
        elif total[key[:2]]:
            edited[key[:3]].append(key)
    for group in (more, fewer):
        for name, keys_of_name in group.items():
            paired = _paired(keys_of_name, edited)
            group[name] = [key for key in keys_of_name if key not in paired]
            for key, other in paired.items():
                gain = after.count(key) + after.count(other) - before.count(key)
                if abs(gain - before.count(other)) > 1e-9:
                    yield (key, other) if after.count(key) else (other, key)
    for name in sorted({*more, *fewer}):
        gone = fewer[name]
        for key in more[name]:
            like = next((old for old in gone if before.count(old) == after.count(key)), None)
            if like is not None:
                gone.remove(like)
            yield key, like
        yield from ((key, None) for key in gone)


def _paired(
    keys: Sequence[_OperatorKey], edited: Mapping[tuple[str, str, str], Sequence[_OperatorKey]]
) -> Mapping[_OperatorKey, _OperatorKey]:
    """Return, for keys, the key of the most similar edited line. Each edited line is used once."""
    alike = [
        (likeness, key, other)
        for key in keys
        for other in edited.get(key[:3], ())
        for likeness in [_likeness(key.text, other.text)]
        if likeness[0]
    ]
    pairs: dict[_OperatorKey, _OperatorKey] = {}
    for _, key, other in sorted(alike, reverse=True):
        if key not in pairs and other not in pairs.values():
            pairs[key] = other
    return pairs


def _likeness(text: str, other: str) -> tuple[bool, float]:
    """Return whether both lines may be of one function or a comprehension in it, and how alike.

    A text has the form ``function: line``.
    """
    function, _, line = text.partition(": ")
    other_function, _, other_line = other.partition(": ")
    alike = difflib.SequenceMatcher(None, line, other_line).ratio()
    inside = "<" in (function[:1], other_function[:1]) and alike >= _LEAST_LIKENESS
    return function == other_function or inside, alike


def _apart(before: Sequence[float] | None, after: Sequence[float] | None) -> bool:
    low, high = sorted((before or [0.0], after or [0.0]), key=max)
    return max(low) < min(high) - 1e-9


def _current_place(
    place: tuple[str, str], before: _SideProfiles, after: _SideProfiles
) -> tuple[str, str]:
    """Return the place, or for a line that head lacks, the most similar line new in head."""
    if place not in before.lines or place in after.lines:
        return place
    file, text = place
    new = [
        (likeness, line)
        for line in after.lines.keys() - before.lines.keys()
        for likeness in [_likeness(text, line[1])]
        if line[0] == file and likeness[0]
    ]
    return max(new)[1] if new else place


def _is_edited(key: _OperatorKey, old: _OperatorKey) -> bool:
    return key != old and key.signature == old.signature


def _line_difference(
    place: tuple[str, str],
    keys: Sequence[_OperatorKey],
    changed: Mapping[_OperatorKey, _OperatorKey | None],
    before: _SideProfiles,
    after: _SideProfiles,
) -> Difference:
    def gain(key: _OperatorKey) -> float:
        old = changed[key] or key
        stayed = after.time(old) - before.time(key) if _is_edited(key, old) else 0.0
        return after.time(key) - before.time(old) + stayed

    seconds = sum(map(gain, keys))
    known = abs(seconds) >= _LEAST_SHARE * min(before.call_s, after.call_s)
    direction = 1 if seconds >= 0 else -1
    lead = max(keys, key=lambda key: (_is_read(key, before, after), direction * gain(key), key))
    arguments: dict[str, Plain] = {
        "operator": lead.name,
        "before": before.count(lead),
        "after": after.count(lead),
        "seconds": gain(lead) if known else 0.0,
        "others": len(keys) - 1,
        "total": seconds if known else 0.0,
    }
    code = "operator-kernel" if lead.text == "device" else "operator-calls"
    old = changed[lead]
    if old and _is_edited(lead, old):
        arguments["before"] = before.count(lead) + before.count(old)
        arguments["after"] = after.count(lead) + after.count(old)
    elif old:
        code = "operator-tensors"
        arguments |= {"before": old.signature, "after": lead.signature, "calls": after.count(lead)}
    side = after if place in after.lines else before
    return Difference(
        "operators",
        code,
        arguments,
        seconds=seconds if known else 0.0,
        metric="latency",
        file=place[0],
        line=side.lines.get(place, 0),
    )


def _is_read(key: _OperatorKey, before: _SideProfiles, after: _SideProfiles) -> bool:
    return key.name in _VALUE_READS and after.count(key) >= before.count(key)


def _slower(
    before: _SideProfiles, after: _SideProfiles, reported: set[str]
) -> Iterator[Difference]:
    """Yield operators whose time changed while their count did not."""
    least = _LEAST_SHARE * min(before.call_s, after.call_s)
    for key in sorted(before.times.keys() & after.times.keys()):
        if key.name in reported or min(before.runs, after.runs) < RUNS:
            continue
        old, new = before.time(key), after.time(key)
        low, high = sorted((old, new))
        if abs(new - old) < least or high < _LEAST_RATIO * low:
            continue
        if _apart(before.times[key], after.times[key]):
            yield Difference(
                "operators",
                "operator-time",
                {"operator": key.name, "calls": after.count(key), "before": old, "after": new},
                seconds=new - old,
                metric="latency",
                file=key.file,
                line=after.lines.get((key.file, key.text), 0),
                exact=False,
            )


def _side_profiles(recorded: Sequence[Recorded]) -> _SideProfiles:
    runs = len(recorded)
    side = _SideProfiles(runs, min(profile["call_s"] for profile in recorded))
    for number, profile in enumerate(recorded):
        for name, signature, line, count, seconds in profile["operators"]:
            file, at, text = profile["lines"][line] if line >= 0 else ("", 0, "")
            key = _OperatorKey(name, signature, file, text)
            side.counts.setdefault(key, [0.0] * runs)[number] += count
            side.times.setdefault(key, [0.0] * runs)[number] += seconds
            side.lines.setdefault((file, text), at)
        for name, count, seconds in profile["device"]:
            key = _OperatorKey(name, "", "", "device")
            side.counts.setdefault(key, [0.0] * runs)[number] += count
            side.times.setdefault(key, [0.0] * runs)[number] += seconds
    return side


def _count_text(count: float) -> str:
    return f"{count:.4g}"


def _signed(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{format_value(abs(seconds), 's')}"


def _of_group(seconds: float, total: float | None, others: int, what: str = "operator") -> str:
    """Return the operator's time, with the time of all operators of its line if there are others.

    A time of 0 may be noise, and isn't given. Reports of an older perfci have no ``total``.
    """
    own = f", {_signed(seconds)}" if seconds else ""
    if not others:
        return own
    more = f", with {counted(others, f'other {what}')}"
    if total is None:
        return f"{own}{more}"
    return f"{more}, {_signed(total)} in all" if total else more


def _calls(
    *,
    operator: str,
    before: float,
    after: float,
    seconds: float,
    others: int,
    total: float | None = None,
) -> str:
    times = f"{_count_text(before)} → {_count_text(after)} calls"
    return f"`{operator}` {times}{_of_group(seconds, total, others)}"


def _tensors(
    *,
    operator: str,
    before: str,
    after: str,
    calls: float,
    seconds: float,
    others: int,
    total: float | None = None,
) -> str:
    times = f"{_count_text(calls)} calls{_of_group(seconds, total, others)}"
    return f"`{operator}` on {after}, before on {before}, {times}"


def _kernel(
    *,
    operator: str,
    before: float,
    after: float,
    seconds: float,
    others: int,
    total: float | None = None,
) -> str:
    times = f"{_count_text(before)} → {_count_text(after)} times"
    return f"on the device `{operator}` {times}{_of_group(seconds, total, others, 'kernel')}"


def _time(*, operator: str, calls: float, before: float, after: float) -> str:
    return (
        f"`{operator}` takes {format_value(before, 's')} → {format_value(after, 's')} "
        f"in {_count_text(calls)} calls"
    )


WORDS: Words = {
    "operator-calls": _calls,
    "operator-tensors": _tensors,
    "operator-kernel": _kernel,
    "operator-time": _time,
}
