"""The loops around a call: what is read when, and when a worker is warm."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from perfci.metrics.memory import memory_growth
from perfci.worker.bursts import warm_up
from perfci.worker.calls import device_burst, synchronised_burst


class Recorder:
    """A device that writes down what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def synchronize(self) -> None:
        self.asked.append("synchronize")

    def stream(self) -> str:
        return "stream"

    def event(self) -> Any:
        return _Event(self)


class _Event:
    def __init__(self, device: Recorder) -> None:
        self.device = device

    def record(self, stream: str) -> None:
        self.device.asked.append(f"record in {stream}")

    def elapsed_time(self, other: _Event) -> float:
        assert other is not self
        return 0.25


def test_the_device_is_synchronised_around_each_call_and_nothing_else_is_timed() -> None:
    device = Recorder()
    samples = array("q")
    synchronised_burst(partial(device.asked.append, "call"), samples, device, device.synchronize, 2)
    assert device.asked == ["synchronize", "call", "synchronize"] * 2
    assert len(samples) == 2


class Held(Recorder):
    """A device that can be kept busy while a call is launched."""

    def hold(self, seconds: float) -> None:
        self.asked.append(f"hold {seconds:.0e} s")


@pytest.mark.parametrize(("device", "held"), [(Recorder(), []), (Held(), ["hold 1e-05 s"])])
def test_the_devices_own_time_is_taken_apart_while_it_is_held(
    device: Recorder, held: list[str]
) -> None:
    times = array("q")
    call = partial(device.asked.append, "call")
    device_burst(call, times, device, device.synchronize, 2, latency_ns=10_000)
    events = ["record in stream", "call", "record in stream"]
    assert device.asked == ["synchronize", *held, *events, "synchronize"] * 2
    assert list(times) == [250_000, 250_000]  # ms to ns


def test_long_calls_are_timed_by_the_clock_and_by_events_at_once() -> None:
    device = Recorder()
    samples, times = array("q"), array("q")
    call = partial(device.asked.append, "call")
    device_burst(call, times, device, device.synchronize, 2, samples=samples)
    events = ["record in stream", "call", "record in stream"]
    assert device.asked == ["synchronize", *events, "synchronize"] * 2
    assert (len(samples), list(times)) == (2, [250_000, 250_000])


def latencies(*medians_ns: int) -> tuple[Callable[[array[int], float], None], list[int]]:
    left = list(medians_ns)

    def burst(samples: array[int], seconds: float) -> None:
        samples.append(left.pop(0))

    return burst, left


def test_warming_up_goes_on_while_latencies_fall() -> None:
    burst, left = latencies(100, 80, 60, 40, 40, 40, 40, 7, 7)
    assert warm_up(burst, 1.0, 60.0) == pytest.approx(40e-9)
    assert left == [7, 7]


def test_a_worker_that_gets_slower_is_warm() -> None:
    burst, left = latencies(100, 110, 120, 130, 7)
    warm_up(burst, 1.0, 60.0)
    assert left == [7]


def test_growth_needs_ten_points_in_half_a_second() -> None:
    assert memory_growth(lambda: None, 0.06, lambda: 0.0) is None
    assert memory_growth(lambda: None, 0.04, lambda: 0.0) == 0.0
