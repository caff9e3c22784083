"""Host time of a call outside of operators, by stack, sampled next to a profile.

A thread looks at the stack of the main one; the profiler's events say whether an operator ran at
that moment. An operator gives the interpreter's lock back, and Python code within the switch
interval, which is 10 µs here: by the default of 5 ms, or by a signal's handler, most samples fall
on the next operator's line (seen with torch 2.13).
"""

from __future__ import annotations

import linecache
import math
import re
import sys
import threading
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import CodeType, FrameType
from typing import Any, NamedTuple

from perfci.instruments import PERFCI, Recorded, RecordingScene
from perfci.model.finding import Difference, Stack
from perfci.stats.quantile import upper_median
from perfci.units import format_value

PLACE = 40
WHEN = "work"
RUNS = 3

_SECONDS, _MOST_CALLS = 0.3, 20_000
_INTERVAL_S, _SWITCH_S = 0.0005, 1e-5
_DEEPEST, _MOST_STACKS, _LONGEST = 60, 400, 160
_LEAST_OF_CALL, _LEAST_GROWTH = 0.05, 0.25
"""A function that takes so much more, as a share of base's call and of its own time, is named."""
_LEAST_OF_GROWTH = 0.1
"""Least share of the total growth that a function explains."""
_FEWEST_SAMPLES, _ERRORS = 30, 3.0
"""Least gain in standard errors, which are those of counting samples."""
_MOST_FOLDED = 150
"""Stacks of a flame graph; there are rarely more that take 0.1 % of a call."""

_COMPREHENSION = re.compile(r"(?:\.<locals>)?\.?<(?:(?:list|dict|set)comp|genexpr)>")
"""A frame of its own before Python 3.12. Its time is the function's."""

# In the worker.

_Stack = tuple[tuple[CodeType, int], ...]


@contextmanager
def _sampled() -> Iterator[list[tuple[int, _Stack]]]:
    """Look at this thread's stack now and then. Times are in ns since the epoch."""
    seen: list[tuple[int, _Stack]] = []
    over = threading.Event()
    thread = threading.get_ident()

    def look() -> None:
        while not over.is_set():
            time.sleep(_INTERVAL_S)
            frame: FrameType | None = sys._current_frames().get(thread)  # noqa: SLF001 (there is no other way)
            now = time.time_ns()
            stack: list[tuple[CodeType, int]] = []
            while frame is not None and len(stack) < _DEEPEST:
                stack.append((frame.f_code, frame.f_lineno or 0))  # made code may have no lines
                frame = frame.f_back
            seen.append((now, tuple(reversed(stack))))

    sampler = threading.Thread(target=look, daemon=True)
    switch_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    sampler.start()
    try:
        yield seen
    finally:
        over.set()
        sampler.join()
        sys.setswitchinterval(switch_s)


def record(scene: RecordingScene) -> Recorded:
    """Sample calls for a while, with a profile of torch's operators if torch is loaded."""
    profiler = _profiler()
    with profiler or nullcontext(), _sampled() as seen:
        calls, wall_s = _calls(scene.once)
    events = profiler.profiler.kineto_results.events() if profiler else ()
    ran = sorted(
        (event.start_ns(), event.start_ns() + event.duration_ns(), event.name())
        for event in events
        if event.device_type().name == "CPU"
    )
    return _recorded(scene, seen, ran, wall_s / calls)


def _profiler() -> Any:
    if "torch" not in sys.modules:
        return None
    from torch.profiler import ProfilerActivity, profile

    return profile(activities=[ProfilerActivity.CPU])


def _calls(once: Callable[[], None]) -> tuple[int, float]:
    """Make calls for a while; return how many, and the time that they took."""
    started = time.perf_counter()
    calls, took = 0, 0.0
    while calls < _MOST_CALLS and took < _SECONDS:
        once()
        calls += 1
        took = time.perf_counter() - started
    return calls, took


def _recorded(
    scene: RecordingScene,
    seen: Sequence[tuple[int, _Stack]],
    ran: Sequence[tuple[int, int, str]],
    call_s: float,
) -> Recorded:
    outermost: list[tuple[int, int, str]] = []
    for each in ran:
        if not outermost or each[0] >= outermost[-1][1]:
            outermost.append(each)
    starts = [start for start, _, _ in outermost]
    frames = _Frames(scene)
    counts: Counter[tuple[tuple[int, ...], str]] = Counter()
    for now, stack in seen:
        place = bisect_right(starts, now) - 1
        inside = place >= 0 and now < outermost[place][1]
        operator = outermost[place][2][:_LONGEST] if inside else ""
        if of_call := frames.of(stack):
            counts[of_call, operator] += 1
    return {
        "call_s": call_s,
        "samples": sum(counts.values()),
        "frames": frames.rows,
        "stacks": [[*key, count] for key, count in counts.most_common(_MOST_STACKS)],
    }


class _Frames:
    """Frames by number: file, line and its text, function, and whether it is of the side's own.

    perfci's frames are left out, and so is the line of a library's: one of its functions is one
    frame.
    """

    def __init__(self, scene: RecordingScene) -> None:
        self._scene = scene
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._known: dict[tuple[CodeType, int], int] = {}

    @property
    def rows(self) -> list[list[Any]]:
        return [list(row) for row in self._numbers]

    def of(self, stack: _Stack) -> tuple[int, ...]:
        numbers = (self._number(code, line) for code, line in stack)
        return tuple(number for number in numbers if number >= 0)

    def _number(self, code: CodeType, line: int) -> int:
        if (code, line) not in self._known:
            self._known[code, line] = self._new(code, line)
        return self._known[code, line]

    def _new(self, code: CodeType, line: int) -> int:
        file = code.co_filename
        if file.startswith(PERFCI):
            return -1
        function = getattr(code, "co_qualname", code.co_name)
        function = _COMPREHENSION.sub("", function)[:_LONGEST] or function
        if own := self._scene.place(file):
            text = linecache.getline(file, line).strip()[:_LONGEST]
            row = (own[:_LONGEST], line, text, function, True)
        else:
            row = ("/".join(file.split("/")[-3:])[:_LONGEST], 0, "", function, False)
        return self._numbers.setdefault(row, len(self._numbers))


# In the parent. Pure.


class _Line(NamedTuple):
    file: str
    function: str
    line: int
    text: str


def differences(base: Sequence[Recorded], head: Sequence[Recorded]) -> Iterator[Difference]:
    """Yield the own functions that take longer outside of operators, each by the line that grew."""
    if min(len(base), len(head)) < RUNS:
        return
    if any(run["samples"] < _FEWEST_SAMPLES for run in (*base, *head)):
        return
    before, after = (_by_function(runs) for runs in (base, head))
    each_s = [run["call_s"] / run["samples"] for run in (*base, *head)]
    call_s = min(run["call_s"] for run in base)
    grown = sum(map(upper_median, after.values())) - sum(map(upper_median, before.values()))
    for function in before.keys() | after.keys():
        was = before.get(function, (0.0,) * len(base))
        now = after.get(function, (0.0,) * len(head))
        before_s, after_s = upper_median(was), upper_median(now)
        gain = after_s - before_s
        apart = min(now) > max(was) if gain > 0 else min(was) > max(now)
        least = max(
            _LEAST_OF_CALL * call_s,
            _LEAST_GROWTH * min(before_s, after_s),
            _LEAST_OF_GROWTH * abs(grown),
            _ERRORS * _standard_error((*was, *now), each_s),
        )
        # what moved into another function is no gain
        if apart and abs(gain) >= least and gain * grown > 0 and abs(grown) >= abs(gain) / 2:
            line = _line_that_moved(function, base, head, gain)
            yield Difference(
                "python",
                "python-time",
                {"function": function[1], "before": before_s, "after": after_s},
                gain,
                metric="latency",
                file=function[0],
                line=line,
                exact=abs(gain) >= min(before_s, after_s),  # no variance doubles a time
            )


def _standard_error(times: Sequence[float], each_s: Sequence[float]) -> float:
    """Return that of the difference of two sides' means, in s; a sample stands for ``each_s``."""
    runs = len(times) / 2
    pairs = zip(times, each_s, strict=True)
    return math.sqrt(sum(max(time, one_s) * one_s for time, one_s in pairs)) / runs


def stacks(base: Sequence[Recorded], head: Sequence[Recorded]) -> tuple[Stack, ...]:
    """Return both sides' stacks of functions, without their lines, those that take most first.

    Raises ValueError where a worker sent what is no time.
    """
    sides = [_folded(runs) for runs in (base, head)]
    if not all(0.0 <= time < math.inf for side in sides for time in side.values()):
        raise ValueError("it is no time")
    every = dict.fromkeys(name for side in sides for name in side)
    stacks_of = [Stack(frames, *(side.get(frames, 0.0) for side in sides)) for frames in every]
    stacks_of.sort(key=lambda each: -(each.base + each.head))
    return tuple(stacks_of[:_MOST_FOLDED])


def _folded(runs: Sequence[Recorded]) -> Mapping[tuple[str, ...], float]:
    times: dict[tuple[str, ...], float] = defaultdict(float)
    for run in runs:
        each_s = run["call_s"] / max(1, run["samples"]) / len(runs)
        names = [f"{function} ({file})" for file, _, _, function, _ in run["frames"]]
        for numbers, operator, count in run["stacks"]:
            frames = [names[number] for number in numbers] + [str(operator)] * bool(operator)
            times[tuple(frames)] += count * each_s
    return times


def _by_function(runs: Sequence[Recorded]) -> Mapping[tuple[str, str], tuple[float, ...]]:
    """Return the own time of each own function in each run, in s a call."""
    each = [_times(run) for run in runs]
    names = {(line.file, line.function) for times in each for line in times}
    return {
        name: tuple(
            sum(time for line, time in times.items() if (line.file, line.function) == name)
            for times in each
        )
        for name in names
    }


def _times(run: Recorded) -> Mapping[_Line, float]:
    """Return a run's time outside of operators by the innermost own line, in s a call."""
    times: dict[_Line, float] = defaultdict(float)
    for numbers, operator, count in run["stacks"]:
        own = [run["frames"][number] for number in numbers if run["frames"][number][4]]
        if own and not operator:
            file, line, text, function, _ = own[-1]
            times[_Line(file, function, line, text)] += count / run["samples"] * run["call_s"]
    return times


def _line_that_moved(
    function: tuple[str, str], base: Sequence[Recorded], head: Sequence[Recorded], gain: float
) -> int:
    """Return the line of head's function that moved most the way of ``gain``, matched by text."""
    gains: dict[str, float] = defaultdict(float)
    lines: dict[str, int] = {}
    for runs, sign in ((base, -1.0), (head, 1.0)):
        for run in runs:
            for line, seconds in _times(run).items():
                if (line.file, line.function) == function:
                    gains[line.text] += sign * seconds / len(runs)
                    if sign > 0:
                        lines[line.text] = line.line
    here = {text: gains[text] for text in lines}
    return lines[max(here, key=lambda text: here[text] * gain)] if here else 0


WORDS = {
    "python-time": lambda *, function, before, after: (
        f"`{function}` takes {format_value(before, 's')} → {format_value(after, 's')} a call "
        "outside of operators"
    ),
}
