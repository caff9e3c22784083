"""The bursts of one worker: its samples, and how long the kernel kept it off its core."""

from __future__ import annotations

import base64
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfci.record.worker import Burst
from perfci.worker.device import Cuda
from perfci.worker.garbage import collect
from perfci.worker.timing import burst, synchronised_burst

_SCHEDSTAT = Path("/proc/self/schedstat")


class Bursts:
    """Runs bursts and keeps all their samples, in ns."""

    def __init__(self, call: Callable[[], Any], device: Cuda | None) -> None:
        self._call = call
        self._device = device
        self.samples: array[int] = array("q")
        self.device_samples: array[int] = array("q")

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
        delay = run_delay_ns()
        started = time.monotonic_ns()
        count = self._timed(self.samples, self.device_samples, seconds, least)
        ended = time.monotonic_ns()
        return Burst(
            samples=count,
            started=started / 1e9,
            duration=(ended - started) / 1e9,
            run_delay=(run_delay_ns() - delay) / 1e9,
            lead_in=len(unrecorded),
        )

    def size(self) -> int:
        """Return the bytes that the samples take."""
        kept = (self.samples, self.device_samples)
        return sum(samples.itemsize * len(samples) for samples in kept)

    def _timed(
        self, samples: array[int], device_samples: array[int], seconds: float, least: int
    ) -> int:
        if self._device is None:
            return burst(self._call, samples, seconds, least)
        return synchronised_burst(self._call, samples, device_samples, self._device, seconds, least)


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
