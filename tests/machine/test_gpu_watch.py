"""What NVML tells of a card: the right card, each reading for itself, and what is unknown said."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from perfci.measure.machine.gpu_watch import GpuState, GpuWatches, set_aside_reason
from tests.machine.fake_nvml import FIRST, SECOND, FakeNvml, card, error

GOOD = GpuState(slowdown="", compute_pids=frozenset({10}))
READINGS = {
    "slowdowns": "nvmlDeviceGetCurrentClocksEventReasons",
    "processes": "nvmlDeviceGetComputeRunningProcesses",
}


def state(**fields: object) -> GpuState:
    return GpuState(**{"slowdown": "", "compute_pids": frozenset({10}), **fields})


def test_the_card_is_the_one_that_torch_names_and_not_nvmls_first() -> None:
    slowed = card(nvmlDeviceGetCurrentClocksEventReasons=0x40)
    nvml = FakeNvml({f"GPU-{FIRST}": slowed, f"GPU-{SECOND}": card()})
    watch = GpuWatches(nvml).of(SECOND)
    assert watch is not None
    assert watch.read().slowdown == ""
    assert {handle for _, handle in nvml.asked if handle} == {f"GPU-{SECOND}"}


@pytest.mark.parametrize("code", ["NOT_SUPPORTED", "NO_PERMISSION", "GPU_IS_LOST", "UNKNOWN"])
@pytest.mark.parametrize("what", READINGS)
def test_a_reading_that_nvml_refuses_is_unknown_and_the_others_are_made(
    what: str, code: str
) -> None:
    watches = GpuWatches(FakeNvml({f"GPU-{FIRST}": card(**{READINGS[what]: error(code)})}))
    watch = watches.of(FIRST)
    assert watch is not None
    told = watch.read()
    watch.read()
    fields = {"slowdowns": told.slowdown, "processes": told.compute_pids}
    assert [name for name, value in fields.items() if value is None] == [what]
    assert watches.notes() == (f"NVML can't read the card's {what} ({error(code)}).",)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (GOOD, GOOD, ""),
        (state(slowdown="hardware slowdown"), GOOD, "hardware slowdown"),
        (GOOD, state(slowdown="power brake"), "power brake"),
        (GOOD, state(compute_pids=frozenset({10, 99})), "beside a foreign process (99)"),
        (state(compute_pids=frozenset({10, 99})), GOOD, "beside a foreign process (99)"),
        # in a container the ids are others: ours aren't seen either
        (state(compute_pids=frozenset({99})), state(compute_pids=frozenset({99})), ""),
        (state(slowdown=None, compute_pids=None), state(slowdown=None, compute_pids=None), ""),
        (state(slowdown=None), state(slowdown="power brake"), "power brake"),
        (state(at_power_limit=True), state(at_power_limit=True), ""),
    ],
)
def test_a_burst_is_set_aside_for_a_slowdown_or_a_foreign_process(
    before: GpuState, after: GpuState, reason: str
) -> None:
    assert set_aside_reason(before, after, workers=(10, 11)) == reason


HOLDING = """
import torch
held = torch.ones(1, device="cuda")
print("there", flush=True)
input()
"""


@contextmanager
def holder() -> Iterator[int]:
    """A process that has memory on the card; its id."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "there\n"
            yield process.pid
        finally:
            process.kill()


@pytest.mark.gpu
@pytest.mark.torch
def test_a_real_card_is_read_and_a_process_beside_ours_is_seen() -> None:
    import torch

    gpu = GpuWatches()
    watch = gpu.of(str(torch.cuda.get_device_properties(0).uuid))
    if watch is None:
        pytest.skip(gpu.notes()[0])
    with holder() as ours, holder() as foreign:
        told = watch.read()
        assert told.slowdown is not None or "slowdowns" in watch.unknown
        assert told.compute_pids is not None or "processes" in watch.unknown
        temperature = watch.temperature()
        assert temperature is None or 0 < temperature < 120
        if not {ours, foreign} <= (told.compute_pids or frozenset()):
            pytest.skip("NVML shows other process ids here: a container's")
        unslowed = replace(told, slowdown="")
        assert "foreign process" in set_aside_reason(unslowed, unslowed, (ours,))
