"""The loops around a call: what is read when, and when a worker is warm."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perfci.metrics.memory import memory_growth, theil_sen
from perfci.worker.burst_loops import device_burst, synchronised_burst, timed_twice_burst
from perfci.worker.bursts import warm_up
from perfci.worker.devices.cuda import driver_version


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
    timed_twice_burst(call, samples, times, device, device.synchronize, 2)
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


def test_slow_calls_are_made_twice_at_most() -> None:
    burst, left = latencies(900_000_000, 600_000_000, 1, 1)
    assert warm_up(burst, 1.0, 60.0) == pytest.approx(0.6)
    assert left == [1, 1]


def test_without_time_to_warm_up_the_first_call_is_the_estimate() -> None:
    burst, left = latencies(1)
    assert warm_up(burst, 0.125, 0.0) == 0.125
    assert left == [1]


def test_theil_sen_ignores_single_jumps() -> None:
    levels = [float(3 * i) for i in range(30)]
    levels[10] += 1e9
    assert theil_sen(levels) == pytest.approx(3.0)


@pytest.mark.parametrize("count", [10, 11])
def test_theil_sen_of_a_line_is_its_slope(count: int) -> None:
    assert theil_sen([5.0 - 2.0 * i for i in range(count)]) == pytest.approx(-2.0)


def test_growth_is_a_call_and_not_a_point() -> None:
    held = [0.0]

    def call() -> None:
        held[0] += 64.0

    assert memory_growth(call, 1e-6, lambda: held[0]) == pytest.approx(64.0)


def test_growth_needs_ten_points_in_half_a_second() -> None:
    assert memory_growth(lambda: None, 0.06, lambda: 0.0) is None
    assert memory_growth(lambda: None, 0.04, lambda: 0.0) == 0.0


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6", "535.54.03"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.90.07  R", "550.90.07"),
        ("something else", None),
    ],
)
def test_the_drivers_version_is_read(tmp_path: Path, line: str, version: str | None) -> None:
    path = tmp_path / "version"
    path.write_text(f"{line}\nGCC version:  gcc version 12.2.0\n", encoding="utf-8")
    assert driver_version(path) == version
    assert driver_version(tmp_path / "none") is None
