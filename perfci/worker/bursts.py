"""The bursts of one worker: its samples, garbage collection, and whether the work forked.

Garbage is collected between bursts, for two reasons. If Python collected it by itself, some
samples would contain a collection and others not. Without any collection, the reference cycles
that calls leave would count as memory, and quicker work would leave more of them.

That makes a collection cheap, because the objects that exist before the bursts are skipped. So if
calls start collections themselves, or the work has set the collector, it is left to the work.
"""

from __future__ import annotations

import base64
import gc
import math
import mmap
import os
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from perfci.clock import monotonic_ns, perf_counter, perf_counter_ns
from perfci.errors import Unusable
from perfci.metrics.observed.allocator import collections_so_far
from perfci.model.worker import WorkerBlock
from perfci.worker import calls as loops
from perfci.worker.calls import require_ended
from perfci.worker.devices import BurstDevice
from perfci.worker.protocol import SocketTurn, moved_high

_NO_LIMIT = sys.maxsize
# The warm-up ends when the worker's own latencies stop falling.
BLOCK_S = 0.02
"""Length of a warm-up block. A short warm-up has shorter blocks."""
_STEADY_BLOCKS = 3
"""The warm-up ends after this many blocks in a row that are no faster than the best before."""
_FALLING = 0.99
"""Latencies still fall if a block's median is below this share of the best median before it."""
_TIMED_PART = 4
"""Calls that time the device alone: a burst's recorded calls divided by this."""
_SLOW_S = 0.5
"""Calls that take this long are warm after ``_SLOW_CALLS`` calls."""
_SLOW_CALLS = 2
_LEAST_WAIT_NS = 5_000_000
_USUAL_THRESHOLDS = gc.get_threshold()  # this module is imported before the work
"""Least time spent waiting for turns from which the share of other threads is computed."""
_LAST_WAIT_NS = 250_000_000
"""Longest wait for a forked copy that may yet return. A pool's children never return."""


class Bursts:
    """Runs blocks of bursts and keeps the samples of each block, in ns."""

    def __init__(
        self,
        call: Callable[[], Any],
        device: BurstDevice | None,
        copies: StrayCopies,
        garbage: Garbage,
        *,
        prepare: Callable[[], object] | None = None,
    ) -> None:
        self._call = call
        self._device = device
        self._garbage = garbage
        self._by_events = device is not None and "device_time_p50" not in device.missing()
        self._prepare = prepare
        self._burst = partial(loops.prepared_burst, prepare) if prepare else loops.burst
        self.preparing_s = 0.0
        """Mean time that preparing a call took in the warm-up's last block."""
        self._core = CoreTaken()
        self._copies = copies
        self.samples: list[array[int]] = []
        self.device_samples: list[array[int]] = []
        self.calls = 0
        """Number of calls made in blocks so far, including lead-ins."""
        self._waited_ns = self._others_ns = 0

    def once(self) -> None:
        """Make one call and wait for its end."""
        if self._prepare:
            self._prepare()
        output = self._call()
        require_ended(output)
        if self._device:
            self._device.synchronize()
        del output
        self._copies.require_none()

    def warm(self, samples: array[int], seconds: float) -> None:
        """Make calls for ``seconds``. Their samples go to ``samples`` and are not kept here."""
        before, began_ns = len(samples), perf_counter_ns()
        self._run_burst(samples, _NO_LIMIT, seconds)
        if self._prepare and (made := samples[before:]):
            self.preparing_s = (perf_counter_ns() - began_ns - sum(made)) / len(made) / 1e9

    def block(self, lead_ins: Sequence[int], calls: int, turn: SocketTurn | None) -> WorkerBlock:
        """Run bursts of ``calls`` calls, each in its turn; fewer if the turns end.

        A worker that measures alone has no ``turn``.

        Each burst begins with as many unrecorded calls as ``lead_ins`` says, because the other
        side's burst left its data in the caches. Reference cycles are freed before the turn is
        handed over, so that their memory is free for the other side.
        """
        self._garbage.collect()
        samples: array[int] = array("q")
        device_samples: array[int] = array("q")
        apart = math.ceil(calls / _TIMED_PART) if self._by_events and calls > 1 else 0
        delays: list[float] = []
        inside_ns = leading_ns = collections = 0
        began_ns = monotonic_ns()
        for lead_in in lead_ins:
            if not self._await(turn):
                break
            before = collections_so_far()
            leading: array[int] = array("q")
            taken_first_ns = self._core.taken_ns()
            self._run_burst(leading, lead_in)
            taken_before_ns = self._core.taken_ns()
            leading_ns += sum(leading) - (taken_before_ns - taken_first_ns)
            started_ns = monotonic_ns()
            self._run_recorded(samples, device_samples, calls, apart)
            inside_ns += monotonic_ns() - started_ns
            self.calls += lead_in + calls + apart
            delays.append((self._core.taken_ns() - taken_before_ns) / 1e9)
            collections += collections_so_far() - before + self._garbage.is_set_by_work()
            self._garbage.collect()
            if turn:
                turn.hand_over()
        self._copies.require_none()
        if samples:
            self.samples.append(samples)
        if samples and self._by_events:
            self.device_samples.append(device_samples)
        return WorkerBlock(
            bursts=len(delays),
            samples=calls,
            lead_ins=tuple(lead_ins[: len(delays)]),
            leading=leading_ns / 1e9,
            timed_apart=apart,
            started=began_ns / 1e9,
            duration=inside_ns / 1e9,
            run_delay=tuple(delays),
            collections=collections,
        )

    def _await(self, turn: SocketTurn | None) -> bool:
        """Wait for the turn. Note the processor time that other threads take meanwhile.

        Return False if the turn will not come.
        """
        if turn is None:
            return True
        began_ns, others_ns = monotonic_ns(), _cpu_of_other_threads_ns()
        came = turn.come()
        self._waited_ns += monotonic_ns() - began_ns
        self._others_ns += _cpu_of_other_threads_ns() - others_ns
        return came

    def busy_share(self) -> float:
        """Return other threads' processor time during waits for turns ÷ the length of the waits.

        Zero for a worker that hardly waited, such as a worker that measures alone.
        """
        return self._others_ns / self._waited_ns if self._waited_ns >= _LEAST_WAIT_NS else 0.0

    def size(self) -> int:
        """Return the bytes that the samples take."""
        kept = (*self.samples, *self.device_samples)
        return sum(samples.itemsize * len(samples) for samples in kept)

    def _run_recorded(
        self, samples: array[int], device_samples: array[int], calls: int, apart: int
    ) -> None:
        """Run a burst's recorded calls, then the ``apart`` calls that time the device alone."""
        call, device = self._call, self._device
        if device is None or not self._by_events or calls == 0:
            self._run_burst(samples, calls)
        elif apart == 0:
            loops.device_burst(call, device_samples, device, self._ready, calls, samples=samples)
        else:
            loops.synchronised_burst(call, samples, device, self._ready, calls)
            held_ns = samples[-1]
            loops.device_burst(call, device_samples, device, self._ready, apart, latency_ns=held_ns)
        self._copies.end()

    def _run_burst(self, samples: array[int], most: int, seconds: float = math.inf) -> None:
        if self._device is None:
            self._burst(self._call, samples, most, seconds)
        else:
            loops.synchronised_burst(self._call, samples, self._device, self._ready, most, seconds)
        self._copies.end()

    def _ready(self) -> None:
        """Prepare the next call, and wait until the device has ended that preparation's work."""
        if self._prepare:
            self._prepare()
        if self._device:
            self._device.synchronize()


def _cpu_of_other_threads_ns() -> int:
    return time.process_time_ns() - time.thread_time_ns()


class CoreTaken:
    """The time since this process began for which it was runnable, but kept off its core.

    The file stays open: a reading takes 4 µs, and three times as long if it opens the file first.
    """

    def __init__(self) -> None:
        try:
            self._file = moved_high(os.open("/proc/self/schedstat", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:  # a kernel without CONFIG_SCHED_INFO, or a sandbox that hides it
            self._file = -1

    def taken_ns(self) -> int:
        """Return the time in ns; 0 if it isn't known, as when the benchmark closed the file."""
        try:
            return int(os.pread(self._file, 64, 0).split()[1])
        except (OSError, IndexError, ValueError):  # the descriptor may be another file's by now
            return 0


def encoded(samples: array[int]) -> str:
    """Return samples as base64 of little-endian signed 64-bit integers."""
    if sys.byteorder == "big":
        samples = array("q", samples)
        samples.byteswap()
    return base64.b64encode(samples.tobytes()).decode("ascii")


def warm_up(
    warm: Callable[[array[int], float], object], first_call_s: float, most_s: float
) -> float:
    """Run blocks of calls until three in a row aren't faster. Return the last block's median in s.

    The warm-up lasts ``most_s`` at most. It ends after two calls if they take half a second or
    more. ``warm(samples, seconds)`` runs a block.
    """
    best = float("inf")
    steady = 0
    calls = 0
    median = first_call_s
    end = perf_counter() + most_s
    while steady < _STEADY_BLOCKS and perf_counter() < end:
        samples: array[int] = array("q")
        warm(samples, min(BLOCK_S, most_s / 5))
        calls += len(samples)
        median = sorted(samples)[len(samples) // 2] / 1e9
        steady = 0 if median < _FALLING * best else steady + 1
        best = min(best, median)
        if median >= _SLOW_S and calls >= _SLOW_CALLS:
            break
    return median


class Garbage:
    """The garbage collector: perfci's own, or left to Python, as always if ``PERFCI_GC`` is 1.

    It is Python's until ``stop``.
    """

    def __init__(self) -> None:
        self._left_to_python = os.environ.get("PERFCI_GC") == "1"
        self._was_on = True

    def freeze(self, generation: int = 2) -> None:
        """Collect garbage, and exempt the objects that remain from later collections.

        A collection in a fork would write to these objects, and the system would copy their pages.
        """
        if not self._left_to_python:
            gc.collect(generation)
            gc.freeze()

    def stop(self) -> None:
        """Switch off Python's own collections."""
        if not self._left_to_python:
            self._was_on = gc.isenabled()
            gc.disable()

    def is_set_by_work(self) -> bool:
        """Return whether the work chose when Python collects, which perfci's own way ignores."""
        return gc.get_threshold() != _USUAL_THRESHOLDS or not self._was_on

    def leave_to_python(self) -> None:
        """Let Python collect again, all objects, as it did before ``stop``."""
        if not self._left_to_python:
            self._left_to_python = True
            gc.unfreeze()
            gc.collect()
            if self._was_on:
                gc.enable()

    def collect(self, generation: int = 2) -> int:
        """Free the garbage of recent calls. Return how many objects that were.

        That takes microseconds for few objects: of a ``generation``, or since ``freeze``.
        """
        return 0 if self._left_to_python else gc.collect(generation)


class StrayCopies:
    """Detects forked copies of the worker that return from the work into perfci's code.

    Such a copy would measure too, on the worker's core. Instead, it sets a mark in memory that it
    shares with the worker, and ends. Children of ``multiprocessing`` never return:
    ``multiprocessing`` ends them.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._returned = mmap.mmap(-1, 1)

    def end(self) -> None:
        """End this process if it is a copy."""
        if os.getpid() != self._pid:
            self._returned[0] = 1
            os._exit(0)

    def require_none(self) -> None:
        """Raise Unusable if a copy has returned so far. End this process if it is a copy."""
        self.end()
        if self._returned[0]:
            raise Unusable(
                "forked_copy",
                "it forked, and both copies of the process went on after it: end the child inside, "
                "with os._exit",
            )

    def require_none_at_last(self) -> None:
        """Do as ``require_none``, but first give children that still run time to return."""
        until = monotonic_ns() + _LAST_WAIT_NS
        while not self._returned[0] and _child_runs() and monotonic_ns() < until:
            time.sleep(0.005)
        self.require_none()


def _child_runs() -> bool:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False
