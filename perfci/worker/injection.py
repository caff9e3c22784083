"""Slow-downs of a known size, by explicit wish only: to see that the gate would find them.

Both sides get the same code; base's shares are zero, so that its own cost cancels. Nothing is
computed into a result: the time is really spent, the memory really taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from perfci.clock import perf_counter_ns
from perfci.metrics.observed.tree import resident
from perfci.worker.devices import Device

_PAGE = b"\1"  # of zeros, the kernel would give no page


def slowed(call: Callable[[], Any], share: float, device: Device | None) -> Callable[[], Any]:
    """Return ``call`` that takes ``share`` of its own time longer, spinning on the host.

    Resolves about 0.1 µs. On a device the work is waited for first: the time it takes is known
    only then, and a launch that runs ahead would hide the spin.
    """
    if device is None:

        def spun() -> Any:
            started = perf_counter_ns()
            output = call()
            ended = perf_counter_ns()
            deadline = ended + int((ended - started) * share)
            while perf_counter_ns() < deadline:
                pass
            return output

        return spun

    def spun_after_device() -> Any:
        started = perf_counter_ns()
        output = call()
        device.synchronize()
        ended = perf_counter_ns()
        deadline = ended + int((ended - started) * share)
        while perf_counter_ns() < deadline:
            pass
        return output

    return spun_after_device


def wait_longer(spent_s: float, share: float) -> None:
    """Wait for ``share`` of what was spent already."""
    if share:
        time.sleep(spent_s * share)


def ballast(share: float) -> bytes:
    """Return memory of ``share`` of what is resident now, every page of it touched."""
    return _PAGE * int((resident("VmRSS") or 0) * share)
