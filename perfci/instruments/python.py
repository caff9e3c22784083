"""Host time of a call outside of operators, by stack, sampled next to a profile.

A thread samples the main thread's stack. The profiler's events tell whether an operator ran at that
moment. torch's operators release the GIL, but pure Python code gives it up only once every switch
interval. At the default of 5 ms, most samples would land on the line of the next operator (seen
with torch 2.13), and so they would from a signal handler. So the interval is 10 µs while sampling.
"""

from __future__ import annotations

import linecache
import math
import re
import sys
import threading
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import CodeType, FrameType
from typing import Any

from perfci.clock import perf_counter, sleep, time_ns
from perfci.finding import Difference
from perfci.instruments import PERFCI, Recorded, RecordingScene, SourceLine, moved_functions
from perfci.stats.quantile import upper_median

PLACE = 40
WHEN = "work"
RUNS = 3

_SAMPLING_S, _MOST_CALLS = 0.3, 20_000
"""A recording ends after this time or this many calls, whichever comes first."""
_SAMPLE_EVERY_S, _SWITCH_INTERVAL_S = 0.0005, 1e-5
_MOST_FRAMES, _MOST_STACKS, _LONGEST_TEXT = 60, 400, 160
_LEAST_SHARE_OF_CALL = 0.05
"""Least reported change of a function's time, as a share of base's call."""
_LEAST_SHARE_OF_ITSELF = 0.25
"""Least reported change as a share of the function's own time."""
_LEAST_SHARE_OF_TOTAL = 0.1
"""Least reported change as a share of the change of all functions together."""
_LEAST_STANDARD_ERRORS = 3.0
"""Least reported change in standard errors of counting samples."""
_FEWEST_SAMPLES = 30
"""Samples per run. With fewer, no function is named."""

_COMPREHENSION = re.compile(r"(?:\.<locals>)?\.?<(?:(?:list|dict|set)comp|genexpr)>")
"""A comprehension in a name. Before Python 3.12 it has a frame, which counts as its function's."""

# In the worker.

_Stack = tuple[tuple[CodeType, int], ...]


@contextmanager
def sampling(look: Callable[[FrameType], None], every_s: float) -> Iterator[None]:
    """Call ``look`` with this thread's innermost frame every ``every_s`` while the block runs."""
    over = threading.Event()
    thread = threading.get_ident()

    def sample() -> None:
        while not over.is_set():
            sleep(every_s)
            look(sys._current_frames()[thread])  # noqa: SLF001 (there is no other way)

    sampler = threading.Thread(target=sample, daemon=True)
    switch_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    sampler.start()
    try:
        yield
    finally:
        over.set()
        sampler.join()
        sys.setswitchinterval(switch_s)


def record(scene: RecordingScene) -> Recorded:
    """Sample calls for a while, with a profile of torch's operators if torch is loaded."""
    profiler = _profiler()
    seen: list[
        tuple[int, _Stack]
    ] = []  # time in ns since the epoch, stack from its outermost frame

    def look(innermost: FrameType) -> None:
        now = time_ns()
        frame: FrameType | None = innermost
        stack: list[tuple[CodeType, int]] = []
        while frame is not None and len(stack) < _MOST_FRAMES:
            stack.append((frame.f_code, frame.f_lineno or 0))  # generated code may lack lines
            frame = frame.f_back
        seen.append((now, tuple(reversed(stack))))

    with profiler or nullcontext(), sampling(look, _SAMPLE_EVERY_S):
        _make_calls(scene.once)
    events = profiler.profiler.kineto_results.events() if profiler else ()
    ran = sorted(
        (event.start_ns(), event.start_ns() + event.duration_ns(), event.name())
        for event in events
        if event.device_type().name == "CPU"
    )
    return _recorded(scene, seen, ran)


def _profiler() -> Any:
    if "torch" not in sys.modules:
        return None
    from torch.profiler import ProfilerActivity, profile

    return profile(activities=[ProfilerActivity.CPU])


def _make_calls(once: Callable[[], None]) -> None:
    """Make calls for a while."""
    started = perf_counter()
    for _ in range(_MOST_CALLS):
        once()
        if perf_counter() - started >= _SAMPLING_S:
            return


def _recorded(
    scene: RecordingScene,
    seen: Sequence[tuple[int, _Stack]],
    ran: Sequence[tuple[int, int, str]],
) -> Recorded:
    outermost: list[tuple[int, int, str]] = []
    for operator_run in ran:
        if not outermost or operator_run[0] >= outermost[-1][1]:
            outermost.append(operator_run)
    starts = [start for start, _, _ in outermost]
    frames = _Frames(scene)
    counts: Counter[tuple[tuple[int, ...], str]] = Counter()
    for now, stack in seen:
        place = bisect_right(starts, now) - 1
        inside = place >= 0 and now < outermost[place][1]
        operator = outermost[place][2][:_LONGEST_TEXT] if inside else ""
        if numbers := frames.numbers_of(stack):
            counts[numbers, operator] += 1
    return {
        "call_s": scene.call_s,  # samples give shares: a sampled call takes longer
        "samples": sum(counts.values()),
        "frames": frames.rows,
        "stacks": [[*key, count] for key, count in counts.most_common(_MOST_STACKS)],
    }


class _Frames:
    """Numbers frames. A row has file, line, its text, function, and 1 if it is own code.

    It has 2 for a function that a change touches.

    perfci's frames are left out. A library's frames have no line, so that each of its functions
    counts as one frame.
    """

    def __init__(self, scene: RecordingScene) -> None:
        self._scene = scene
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._known: dict[tuple[int, int], int] = {}
        """By the code's id: code that a tracer wrote may have constants that can't be hashed."""

    @property
    def rows(self) -> list[list[Any]]:
        return [list(row) for row in self._numbers]

    def numbers_of(self, stack: _Stack) -> tuple[int, ...]:
        numbers = (self._number(code, line) for code, line in stack)
        return tuple(number for number in numbers if number >= 0)

    def _number(self, code: CodeType, line: int) -> int:
        key = id(code), line
        if key not in self._known:
            self._known[key] = self._add(code, line)
        return self._known[key]

    def _add(self, code: CodeType, line: int) -> int:
        file = code.co_filename
        if file.startswith(PERFCI):
            return -1
        function = getattr(code, "co_qualname", code.co_name)
        function = _COMPREHENSION.sub("", function)[:_LONGEST_TEXT] or function
        if own := self._scene.place(file):
            text = linecache.getline(file, line).strip()[:_LONGEST_TEXT]
            kind = 2 if self._scene.touches(own, code) else 1
            row = (own[:_LONGEST_TEXT], line, text, function, kind)
        else:
            row = ("/".join(file.split("/")[-3:])[:_LONGEST_TEXT], 0, "", function, 0)
        return self._numbers.setdefault(row, len(self._numbers))


# In the parent. Pure.


def differences(base: Sequence[Recorded], head: Sequence[Recorded]) -> Iterator[Difference]:
    """Yield own functions whose time outside of operators changed, with the line that changed."""
    if min(len(base), len(head)) < RUNS:
        return
    if any(run["samples"] < _FEWEST_SAMPLES for run in (*base, *head)):
        return
    sample_s = [run["call_s"] / run["samples"] for run in (*base, *head)]
    call_s = min(run["call_s"] for run in base)
    base_times, head_times = ([_times_by_line(run) for run in runs] for runs in (base, head))
    for function in moved_functions(base_times, head_times):
        before, after = upper_median(function.before), upper_median(function.after)
        least_gain = max(
            _LEAST_SHARE_OF_CALL * call_s,
            _LEAST_SHARE_OF_ITSELF * min(before, after),
            _LEAST_SHARE_OF_TOTAL * abs(function.total),
            _LEAST_STANDARD_ERRORS * _standard_error((*function.before, *function.after), sample_s),
        )
        if abs(function.gain) >= least_gain:
            yield Difference(
                "python",
                "python-time",
                {"function": function.name, "before": before, "after": after},
                function.gain,
                metric="latency",
                file=function.file,
                line=function.line,
                # doubled: more than chance could do
                exact=abs(function.gain) >= min(before, after),
            )


def _standard_error(times: Sequence[float], sample_s: Sequence[float]) -> float:
    """Return the standard error, in s, of the difference between both sides' means.

    ``sample_s`` has, for each run, the time that a sample stands for. The number of a function's
    samples in a run is a count, whose variance is the count itself. A count of 0 is taken for 1.
    """
    runs = len(times) / 2
    pairs = zip(times, sample_s, strict=True)
    return math.sqrt(sum(max(time, one_s) * one_s for time, one_s in pairs)) / runs


def _times_by_line(run: Recorded) -> Mapping[SourceLine, float]:
    """Return a run's time outside of operators by the side's line, in s per call.

    That is the innermost line in a function that a change touches, or else the innermost one.
    """
    times: dict[SourceLine, float] = defaultdict(float)
    for numbers, operator, count in run["stacks"]:
        own = [run["frames"][number] for number in numbers if run["frames"][number][4]]
        if own and not operator:
            touched = [frame for frame in own if frame[4] == 2]
            file, line, text, function, _ = (touched or own)[-1]
            times[SourceLine(file, function, line, text)] += count / run["samples"] * run["call_s"]
    return times


WORDS = {
    "python-time": "`{function}` takes {before:s} → {after:s} a call outside of operators",
}
