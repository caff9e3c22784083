"""Time until the end of the first call, by the own function that spends it.

A thread samples the main thread's stack. Samples within an import or a compilation are left out:
other instruments tell what these take.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from perfci.clock import perf_counter
from perfci.finding import Difference
from perfci.instruments import Recorded, RecordingScene, SourceLine, Words, moved_functions
from perfci.instruments.python import sampling

PLACE = 14
WHEN = "start"

_SAMPLE_EVERY_S = 0.002
_MOST_LINES = 300
_OTHERS = ("<frozen importlib", "/torch/_dynamo/", "/torch/_inductor/")
"""Parts of the file names of code that imports or compiles."""
_LEAST_S, _LEAST_SHARE = 0.02, 0.25
"""Least reported change of a function's time: in s, and as a share of the shorter time."""

# In the worker.


@contextmanager
def record(scene: RecordingScene) -> Iterator[dict[str, Any]]:
    """Sample the import of the benchmark's file, the set-up and the first call."""
    recorded: dict[str, Any] = {}
    took_s: dict[tuple[str, int, str], float] = defaultdict(float)
    last = perf_counter()

    def look(frame: FrameType) -> None:
        nonlocal last
        now = perf_counter()
        if not _is_of_others(frame):
            took_s[scene.caller(frame)] += now - last
        last = now

    with sampling(look, _SAMPLE_EVERY_S):
        yield recorded
    lines = Counter({place: seconds for place, seconds in took_s.items() if place[0]})
    recorded["lines"] = [[*place, seconds] for place, seconds in lines.most_common(_MOST_LINES)]


def _is_of_others(frame: FrameType | None) -> bool:
    while frame is not None:
        if any(part in frame.f_code.co_filename for part in _OTHERS):
            return True
        frame = frame.f_back
    return False


# In the parent. Pure.


def differences(base: Sequence[Recorded], head: Sequence[Recorded]) -> Iterator[Difference]:
    """Yield the functions that take longer or shorter until the first call has ended.

    Each side's time is that of a single process. So it counts only where the start was measured to
    move the same way, or where it doubled.
    """
    for function in moved_functions(*([_by_line(side[0])] for side in (base, head))):
        (was,), (now,) = function.before, function.after
        if abs(function.gain) >= max(_LEAST_S, _LEAST_SHARE * min(was, now)):
            yield Difference(
                "starting",
                "start-time",
                {"function": function.name, "before": was, "after": now},
                function.gain,
                metric="cold_start",
                file=function.file,
                line=function.line,
                exact=abs(function.gain) >= min(was, now),
            )


def _by_line(recorded: Recorded) -> Mapping[SourceLine, float]:
    return {
        SourceLine(file, function, line, str(line)): seconds
        for file, line, function, seconds in recorded["lines"]
    }


WORDS: Words = {
    "start-time": "`{function}` takes {before:s} → {after:s} until the first call has ended",
}
