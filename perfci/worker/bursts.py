"""The bursts of one worker: its samples, and how long the kernel kept it off its core."""

from __future__ import annotations

import base64
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any

from perfci.model.worker import Burst
from perfci.worker.devices import Device
from perfci.worker.garbage import collect

# The burst loops: what is inside them costs every sample.


def burst(call: Callable[[], Any], samples: array[int], seconds: float, least: int) -> int:
    """Append samples in ns until ``seconds`` have passed and ``least`` calls are made.

    The output of a call is dropped by the next one's assignment, inside the timed region: a
    user's loop frees its outputs too. A burst's last output is dropped outside it, on both sides
    alike. Returns the number of calls.
    """
    append = samples.append
    before = len(samples)
    deadline = perf_counter_ns() + int(seconds * 1e9)
    while True:
        started = perf_counter_ns()
        output = call()  # noqa: F841 (kept alive until the next one, see above)
        ended = perf_counter_ns()
        append(ended - started)
        if ended >= deadline and len(samples) - before >= least:
            return len(samples) - before


def synchronised_burst(
    call: Callable[[], Any],
    samples: array[int],
    device_samples: array[int],
    device: Device,
    seconds: float,
    least: int,
) -> int:
    """Like ``burst``, the device synchronised before each clock reading.

    Events around the same call, in the same stream, give the device's own time in ns; what a
    call launches in a stream of its own, and doesn't wait for, is not in it.
    """
    before = len(samples)
    deadline = perf_counter_ns() + int(seconds * 1e9)
    first, last = device.event(), device.event()
    stream = device.stream()
    while True:
        device.synchronize()
        started = perf_counter_ns()
        first.record(stream)
        output = call()  # noqa: F841 (kept alive until the next one)
        last.record(stream)
        device.synchronize()
        ended = perf_counter_ns()
        samples.append(ended - started)
        device_samples.append(int(first.elapsed_time(last) * 1e6))
        if ended >= deadline and len(samples) - before >= least:
            return len(samples) - before


_SCHEDSTAT = Path("/proc/self/schedstat")


class Bursts:
    """Runs bursts and keeps the samples of each, in ns."""

    def __init__(self, call: Callable[[], Any], device: Device | None) -> None:
        self._call = call
        self._device = device
        self._by_events = device is not None and "device_time_p50" not in device.missing()
        self.samples: list[array[int]] = []
        self.device_samples: list[array[int]] = []

    def once(self) -> None:
        """Make one call, to its end."""
        output = self._call()
        if self._device:
            self._device.synchronize()
        del output

    def unrecorded(self, samples: array[int], seconds: float) -> None:
        """Run one burst into ``samples``, which aren't kept."""
        self._timed(samples, array("q"), seconds, 1)

    def run(self, seconds: float, least: int, lead_in: float | None) -> Burst:
        """Run one burst as ordered; before it ``lead_in`` s of calls, one at least, or none.

        The other side's burst left its own data in the caches: the first calls pay for that, and
        for the collection of what the burst before left.
        """
        collect()
        unrecorded: array[int] = array("q")
        if lead_in is not None:
            self.unrecorded(unrecorded, lead_in)
        samples: array[int] = array("q")
        device_samples: array[int] = array("q")
        delay = run_delay_ns()
        started = time.monotonic_ns()
        count = self._timed(samples, device_samples, seconds, least)
        ended = time.monotonic_ns()
        self.samples.append(samples)
        if self._by_events:
            self.device_samples.append(device_samples)
        return Burst(
            samples=count,
            started=started / 1e9,
            duration=(ended - started) / 1e9,
            run_delay=(run_delay_ns() - delay) / 1e9,
            lead_in=len(unrecorded),
        )

    def size(self) -> int:
        """Return the bytes that the samples take."""
        kept = (*self.samples, *self.device_samples)
        return sum(samples.itemsize * len(samples) for samples in kept)

    def _timed(
        self, samples: array[int], device_samples: array[int], seconds: float, least: int
    ) -> int:
        if self._device is None:
            return burst(self._call, samples, seconds, least)
        if not self._by_events:
            return burst(self._to_its_end, samples, seconds, least)
        return synchronised_burst(self._call, samples, device_samples, self._device, seconds, least)

    def _to_its_end(self) -> Any:
        """Return a call's output once the device has made it; it was idle before the call."""
        output = self._call()
        if self._device:
            self._device.synchronize()
        return output


def run_delay_ns() -> int:
    """Return how long this process was runnable but kept off its core, since it began."""
    try:
        return int(_SCHEDSTAT.read_text(encoding="ascii").split()[1])
    except OSError:  # a kernel without CONFIG_SCHED_INFO, or a sandbox that hides it
        return 0


def encoded(samples: array[int]) -> str:
    """Return samples as base64 of little-endian signed 64-bit integers."""
    if sys.byteorder == "big":
        samples = array("q", samples)
        samples.byteswap()
    return base64.b64encode(samples.tobytes()).decode("ascii")


# Warming up: until the worker's own latencies stop falling.

BLOCK_S = 0.02
_STEADY_BLOCKS = 3
_FALLING = 0.99
"""A block whose median is under this share of the best before is still falling."""
_SLOW_S = 0.5
_SLOW_CALLS = 2


def warm_up(
    burst: Callable[[array[int], float], object], first_call_s: float, most_s: float
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
        burst(samples, min(BLOCK_S, most_s / 5))
        calls += len(samples)
        median = sorted(samples)[len(samples) // 2] / 1e9
        steady = 0 if median < _FALLING * best else steady + 1
        best = min(best, median)
        if median >= _SLOW_S and calls >= _SLOW_CALLS:
            break
    return median
