"""The bursts of one worker: its samples, garbage collection, and whether the work forked.

If Python collected garbage by itself, that would fall into some samples and not into others.
Without collection, what calls leave in reference cycles would count as memory: the quicker the
work, the more of it. So garbage is collected between bursts.
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
from collections.abc import Callable
from functools import partial
from typing import Any

from perfci.clock import monotonic_ns, perf_counter, perf_counter_ns
from perfci.errors import Unusable
from perfci.model.worker import WorkerBlock
from perfci.worker.deferred_work import require_ended
from perfci.worker.devices import BurstDevice
from perfci.worker.protocol import SocketTurn, moved_high

_NO_LIMIT = sys.maxsize
# Warming up: until the worker's own latencies stop falling.
BLOCK_S = 0.02
_STEADY_BLOCKS = 3
_FALLING = 0.99
"""A block whose median is under this share of the best before is still falling."""
_HELD = 1.2
"""Share of a call's latency for which the device is held while the call is launched."""
_TIMED_PART = 4
"""A burst's recorded calls, divided by this, are made once more for the device's own time."""
_SLOW_S = 0.5
_SLOW_CALLS = 2
"""Calls that take half a second or more are warm after two."""
_LEAST_WAIT_NS = 5_000_000
"""A worker that has waited less for its turns doesn't know how busy other threads are."""
_LAST_WAIT_NS = 250_000_000
"""A copy may be late that the system has not let run yet. A pool's children never return."""


# The burst loops: what is inside them costs every sample.
def burst(
    call: Callable[[], Any], samples: array[int], most: int, seconds: float = math.inf
) -> None:
    """Append the samples, in ns, of ``most`` calls, or of fewer once ``seconds`` have passed.

    The output of a call is dropped by the next one's assignment, inside the timed region: a
    user's loop frees its outputs too. A burst's last output is dropped outside it, on both sides
    alike.
    """
    append = samples.append
    deadline = perf_counter_ns() + seconds * 1e9
    for _ in range(most):
        started = perf_counter_ns()
        output = call()  # noqa: F841 (kept alive until the next one, see above)
        ended = perf_counter_ns()
        append(ended - started)
        if ended >= deadline:
            return


def prepared_burst(
    prepare: Callable[[], object],
    call: Callable[[], Any],
    samples: array[int],
    most: int,
    seconds: float = math.inf,
) -> None:
    """Do as ``burst``, but ``prepare`` each call, untimed; its output is dropped untimed, too."""
    deadline = perf_counter_ns() + seconds * 1e9
    for _ in range(most):
        prepare()
        started = perf_counter_ns()
        output = call()
        ended = perf_counter_ns()
        del output
        samples.append(ended - started)
        if ended >= deadline:
            return


def synchronised_burst(
    call: Callable[[], Any],
    samples: array[int],
    device: BurstDevice,
    settle: Callable[[], object],
    most: int,
    seconds: float = math.inf,
) -> None:
    """Do as ``burst``, and synchronise before both clock readings: by ``settle``, then directly."""
    append, synchronize = samples.append, device.synchronize
    deadline = perf_counter_ns() + seconds * 1e9
    for _ in range(most):
        settle()
        started = perf_counter_ns()
        output = call()  # noqa: F841 (kept alive until the next one)
        synchronize()
        ended = perf_counter_ns()
        append(ended - started)
        if ended >= deadline:
            return


def device_burst(
    call: Callable[[], Any],
    device_samples: array[int],
    device: BurstDevice,
    settle: Callable[[], object],
    most: int,
    latency_ns: int,
) -> None:
    """Append the device's own time, in ns, of ``most`` calls: between two events around a call.

    The device is held until the call is launched, so that it waits for no launch. A launch takes
    ``latency_ns`` at most. Not included is what a call launches in another stream and doesn't wait
    for. NVBench measures likewise (``detail/measure_cold.cu``), with a kernel that blocks.
    """
    hold = getattr(device, "hold", None)
    first, last = device.event(), device.event()
    stream = device.stream()
    for _ in range(most):
        settle()
        if hold:
            hold(latency_ns * _HELD / 1e9)
        first.record(stream)
        output = call()  # noqa: F841 (kept alive until the next one)
        last.record(stream)
        device.synchronize()
        device_samples.append(int(first.elapsed_time(last) * 1e6))


def timed_twice_burst(
    call: Callable[[], Any],
    samples: array[int],
    device_samples: array[int],
    device: BurstDevice,
    settle: Callable[[], object],
    most: int,
) -> None:
    """Do both at once: for calls so long that the two records are nothing in their latency."""
    first, last = device.event(), device.event()
    stream = device.stream()
    for _ in range(most):
        settle()
        started = perf_counter_ns()
        first.record(stream)
        output = call()  # noqa: F841 (kept alive until the next one)
        last.record(stream)
        device.synchronize()
        samples.append(perf_counter_ns() - started)
        device_samples.append(int(first.elapsed_time(last) * 1e6))


class Bursts:
    """Runs blocks of bursts and keeps the samples of each block, in ns."""

    def __init__(
        self,
        call: Callable[[], Any],
        device: BurstDevice | None,
        copies: StrayCopies,
        *,
        flush_l2: bool = False,
        prepare: Callable[[], object] | None = None,
    ) -> None:
        self._call = call
        self._device = device
        self._by_events = device is not None and "device_time_p50" not in device.missing()
        self._prepare = prepare
        self._settle = _settling(device, flush_l2=flush_l2)
        self._burst = partial(prepared_burst, prepare) if prepare else burst
        self.preparing_s = 0.0
        """Time that the preparation of a call took in the last block of the warm-up."""
        self._core = CoreTaken()
        self._copies = copies
        self.samples: list[array[int]] = []
        self.device_samples: list[array[int]] = []
        self.calls = 0
        """Calls that blocks made, lead-ins included."""
        self._waited_ns = self._others_ns = 0

    def once(self) -> None:
        """Make one call, to its end."""
        if self._prepare:
            self._prepare()
        output = self._call()
        require_ended(output)
        if self._device:
            self._device.synchronize()
        del output
        self._copies.require_none()

    def warm(self, samples: array[int], seconds: float) -> None:
        """Make calls for ``seconds``. Their samples go to ``samples`` alone."""
        before, began_ns = len(samples), perf_counter_ns()
        self._run_burst(samples, _NO_LIMIT, seconds)
        if self._prepare and (made := samples[before:]):
            self.preparing_s = (perf_counter_ns() - began_ns - sum(made)) / len(made) / 1e9

    def block(self, bursts: int, calls: int, lead_in: int, turn: SocketTurn | None) -> WorkerBlock:
        """Run ``bursts`` of ``calls`` each in turn, or as many as there are turns.

        A worker that measures alone has no ``turn``.

        Before each burst, ``lead_in`` calls are made and not recorded, because the other side's
        burst left its data in the caches. What a burst left in reference cycles is freed before the
        turn is handed over, so that the other side doesn't lack that memory.
        """
        collect()
        samples: array[int] = array("q")
        device_samples: array[int] = array("q")
        apart = math.ceil(calls / _TIMED_PART) if self._by_events and calls > 1 else 0
        delays: list[float] = []
        inside_ns = 0
        began_ns = monotonic_ns()
        while len(delays) < bursts and self._await(turn):
            self._run_burst(array("q"), lead_in)
            taken_before_ns = self._core.taken_ns()
            started_ns = monotonic_ns()
            self._run_recorded(samples, device_samples, calls, apart)
            inside_ns += monotonic_ns() - started_ns
            self.calls += lead_in + calls + apart
            delays.append((self._core.taken_ns() - taken_before_ns) / 1e9)
            collect()
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
            lead_in=lead_in,
            timed_apart=apart,
            started=began_ns / 1e9,
            duration=inside_ns / 1e9,
            run_delay=tuple(delays),
        )

    def _await(self, turn: SocketTurn | None) -> bool:
        """Wait for the turn, and note what this process's other threads do meanwhile."""
        if turn is None:
            return True
        began_ns, others_ns = monotonic_ns(), _cpu_of_other_threads_ns()
        came = turn.come()
        self._waited_ns += monotonic_ns() - began_ns
        self._others_ns += _cpu_of_other_threads_ns() - others_ns
        return came

    def busy_share(self) -> float:
        """Return the processor time of other threads between bursts, as a share of that time.

        Zero for a worker that hardly waited, such as one that measures alone.
        """
        return self._others_ns / self._waited_ns if self._waited_ns >= _LEAST_WAIT_NS else 0.0

    def size(self) -> int:
        """Return the bytes that the samples take."""
        kept = (*self.samples, *self.device_samples)
        return sum(samples.itemsize * len(samples) for samples in kept)

    def _run_recorded(
        self, samples: array[int], device_samples: array[int], calls: int, apart: int
    ) -> None:
        """Run a burst's recorded calls, and those ``apart`` that time the device."""
        call, device = self._call, self._device
        if device is None or not self._by_events or calls == 0:
            self._run_burst(samples, calls)
        elif apart == 0:
            timed_twice_burst(call, samples, device_samples, device, self._ready, calls)
        else:
            synchronised_burst(call, samples, device, self._ready, calls)
            device_burst(call, device_samples, device, self._ready, apart, samples[-1])
        self._copies.end()

    def _run_burst(self, samples: array[int], most: int, seconds: float = math.inf) -> None:
        if self._device is None:
            self._burst(self._call, samples, most, seconds)
        else:
            synchronised_burst(self._call, samples, self._device, self._ready, most, seconds)
        self._copies.end()

    def _ready(self) -> None:
        """Prepare the next call, and have the device end what that began."""
        if self._prepare:
            self._prepare()
        self._settle()


def _cpu_of_other_threads_ns() -> int:
    return time.process_time_ns() - time.thread_time_ns()


def _settling(device: BurstDevice | None, *, flush_l2: bool) -> Callable[[], object]:
    """Return a function that readies the device. Unusable where its cache can't be flushed."""
    if device is None:
        return lambda: None
    if not flush_l2:
        return device.synchronize
    flusher = getattr(device, "l2_flusher", None)
    if flusher is None or "device_time_p50" in device.missing():
        raise Unusable("no_flush", f"flush_l2 is set, and {device.name} has no cache to flush")
    flush, synchronize = flusher(), device.synchronize

    def settle() -> None:
        flush()
        synchronize()

    return settle


class CoreTaken:
    """The time for which this process could run but was kept off its core, since it began.

    A reading of the open file takes 4 µs; one that opens the file takes three times as long.
    """

    def __init__(self) -> None:
        try:
            self._file = moved_high(os.open("/proc/self/schedstat", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:  # a kernel without CONFIG_SCHED_INFO, or a sandbox that hides it
            self._file = -1

    def taken_ns(self) -> int:
        """Return that time in ns; 0 where it isn't known, as when the benchmark closed the file."""
        try:
            return int(os.pread(self._file, 64, 0).split()[1])
        except (OSError, IndexError, ValueError):  # the number may be another file's by now
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
    """Run blocks of calls until three in a row aren't faster; return the last median in s.

    At most ``most_s``; calls of half a second or more are made twice at most.
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


def _left_to_python() -> bool:
    """Return whether the quiet setting is off."""
    return os.environ.get("PERFCI_GC") == "1"


def freeze() -> None:
    """Collect garbage, and exempt the rest from collections: a fork would copy its pages."""
    if not _left_to_python():
        gc.collect()
        gc.freeze()


def stop_collecting() -> None:
    """Leave later collections to ``collect``, which skips all objects that exist by now."""
    freeze()
    if not _left_to_python():
        gc.disable()


def collect() -> None:
    """Free what calls have left since; takes microseconds where they have left nothing."""
    if not _left_to_python():
        gc.collect()


class StrayCopies:
    """A mark in memory shared with the worker's forks. A copy that returns from the work sets it.

    Otherwise both would measure, on one core. ``multiprocessing`` ends its children itself.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._returned = mmap.mmap(-1, 1)

    def end(self) -> None:
        """End this process where it is a copy."""
        if os.getpid() != self._pid:
            self._returned[0] = 1
            os._exit(0)

    def require_none(self) -> None:
        """Raise Unusable where a copy has returned until now; end this process where it is one."""
        self.end()
        if self._returned[0]:
            raise Unusable(
                "forked_copy",
                "it forked, and both copies of the process went on after it: end the child inside, "
                "with os._exit",
            )

    def require_none_at_last(self) -> None:
        """Do as ``require_none`` after the last call, once running children had time to return."""
        until = monotonic_ns() + _LAST_WAIT_NS
        while not self._returned[0] and _child_runs() and monotonic_ns() < until:
            time.sleep(0.005)
        self.require_none()


def _child_runs() -> bool:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False
