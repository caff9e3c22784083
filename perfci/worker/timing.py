"""The burst loops: what is inside them costs every sample."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Protocol


class Device(Protocol):
    """What the timing needs of a device that runs ahead of the host."""

    def synchronize(self) -> None:
        """Wait until all that was launched has ended."""

    def event(self) -> Any:
        """Return a new timing event."""

    def stream(self) -> Any:
        """Return the stream that the work's calls are launched in."""


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
