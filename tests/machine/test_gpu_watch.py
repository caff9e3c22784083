"""What NVML tells of a card: the right card, each reading for itself, and what is unknown said."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from perfci.measure.machine import card_watches
from perfci.measure.machine.card_watches import GpuWatches, held_by, under_load
from perfci.measure.machine.gpu_watch import (
    GpuState,
    UnwatchableCard,
    open_gpu_watch,
    set_aside_reason,
    slowdown_name,
)
from tests.machine.fake_nvml import FIRST, SECOND, FakeNvml, card, error, processes

GOOD = GpuState(energy=1.0, slowdown="", compute_pids=frozenset({10}))
READINGS = {
    "energy": "nvmlDeviceGetTotalEnergyConsumption",
    "slowdowns": "nvmlDeviceGetCurrentClocksEventReasons",
    "processes": "nvmlDeviceGetComputeRunningProcesses",
}


def state(**fields: object) -> GpuState:
    return GpuState(**{"energy": 1.0, "slowdown": "", "compute_pids": frozenset({10}), **fields})


def test_the_card_is_the_one_that_torch_names_and_not_nvmls_first() -> None:
    slowed = card(nvmlDeviceGetCurrentClocksEventReasons=0x40)
    nvml = FakeNvml({f"GPU-{FIRST}": slowed, f"GPU-{SECOND}": card()})
    watch = GpuWatches(nvml).of(SECOND)
    assert watch is not None
    assert watch.read().slowdown == ""
    assert {handle for _, handle in nvml.asked if handle} == {f"GPU-{SECOND}"}


def test_a_card_is_opened_once() -> None:
    nvml = FakeNvml({f"GPU-{FIRST}": card()})
    watches = GpuWatches(nvml)
    assert watches.of(FIRST) is watches.of(FIRST)
    assert [name for name, _ in nvml.asked].count("nvmlInit") == 1


def test_which_cards_there_are_is_asked_once(tmp_path: Path) -> None:
    nvml = FakeNvml({f"GPU-{FIRST}": card(), f"GPU-{SECOND}": card()})
    watches = GpuWatches(nvml, driver=tmp_path)
    for _ in range(2):
        assert watches.of_session(10) == ()
    asked = Counter(name for name, _ in nvml.asked)
    assert asked["nvmlInit"] == 1
    assert asked["nvmlDeviceGetHandleByIndex"] == 2
    assert asked["nvmlDeviceGetComputeRunningProcesses"] == 4


def test_a_sound_card_is_read_and_nothing_is_noted() -> None:
    watches = GpuWatches(
        FakeNvml(
            {f"GPU-{FIRST}": card(nvmlDeviceGetComputeRunningProcesses=processes(7, 8))},
        )
    )
    watch = watches.of(FIRST)
    assert watch is not None
    held = {7: 1 << 30, 8: 1 << 30}
    assert watch.read() == GpuState(0.0, "", compute_pids=frozenset({7, 8}), held=held)
    assert watch.read().energy == 0.25
    assert (watch.temperature(), watch.sm_clock()) == (34, 1980)
    assert watches.notes() == ()


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
    fields = {"energy": told.energy, "slowdowns": told.slowdown, "processes": told.compute_pids}
    assert [name for name, value in fields.items() if value is None] == [what]
    assert watches.notes() == (f"NVML can't read the card's {what} ({error(code)}).",)


def test_a_driver_that_knows_the_older_name_of_slowdowns_is_asked_by_it() -> None:
    old = card(
        nvmlDeviceGetCurrentClocksEventReasons=error("FUNCTION_NOT_FOUND"),
        nvmlDeviceGetCurrentClocksThrottleReasons=0x20,
    )
    watch = open_gpu_watch(FakeNvml({f"GPU-{FIRST}": old}), FIRST)
    assert watch.read().slowdown == "software thermal slowdown"
    assert watch.unknown == {}


@pytest.mark.parametrize(
    ("nvml", "uuid", "said"),
    [
        (FakeNvml({}), "", "torch doesn't say"),
        (FakeNvml({}), FIRST, "Not Found"),
        (FakeNvml({}, init=error("LIBRARY_NOT_FOUND")), FIRST, "Library Not Found"),
        (FakeNvml({}, init=error("LIB_RM_VERSION_MISMATCH")), FIRST, "version mismatch"),
        (FakeNvml({f"MIG-{FIRST}": card()}), FIRST, "MIG"),
        (FakeNvml({f"GPU-{FIRST}": card(nvmlDeviceGetMigMode=[1, 1])}), FIRST, "MIG"),
    ],
    ids=["no UUID", "unknown", "no NVML", "mismatch", "instance's UUID", "card's UUID"],
)
def test_a_card_that_cannot_be_watched_is_noted_with_the_reason(
    nvml: FakeNvml, uuid: str, said: str
) -> None:
    watches = GpuWatches(nvml)
    assert watches.of(uuid) is None
    assert watches.of(uuid) is None
    (note,) = watches.notes()
    assert "was not watched" in note
    assert said in note
    with pytest.raises(UnwatchableCard, match=said):
        open_gpu_watch(nvml, uuid)


@pytest.mark.parametrize("code", ["NOT_SUPPORTED", "FUNCTION_NOT_FOUND"])
def test_a_card_that_knows_no_mig_is_watched(code: str) -> None:
    nvml = FakeNvml({f"GPU-{FIRST}": card(nvmlDeviceGetMigMode=error(code))})
    assert GpuWatches(nvml).of(FIRST) is not None


def test_the_cards_settings_are_facts_and_cards_that_differ_have_a_value_each() -> None:
    settings = {
        "nvmlDeviceGetEnforcedPowerLimit": 500_000,
        "nvmlDeviceGetEccMode": [1, 1],
        "nvmlDeviceGetApplicationsClock": error("NOT_SUPPORTED"),
        "nvmlDeviceGetMaxClockInfo": 1980,
    }
    more = {**settings, "nvmlDeviceGetEnforcedPowerLimit": 700_000}
    capped, free = card(**settings), card(**more)
    nvml = FakeNvml({f"GPU-{FIRST}": capped, f"GPU-{SECOND}": free})
    watches = GpuWatches(nvml)
    of_both = {"device_ecc": "on", "device_clock_most": "1980 MHz"}
    assert watches.facts([FIRST]) == {"device_power_limit": "500 W", **of_both}
    assert watches.facts([FIRST, SECOND]) == {"device_power_limit": "500 W, 700 W", **of_both}
    assert watches.facts(["gone"]) == watches.facts([]) == {}
    assert watches.notes() == ()
    assert nvml.asked.count(("nvmlDeviceGetHandleByUUID", f"GPU-{FIRST}")) == 1
    assert watches.of("gone") is None
    assert "was not watched" in watches.notes()[0]


def test_a_session_without_a_device_asks_nvml_nothing() -> None:
    assert GpuWatches(nvml=None).notes() == ()


def test_the_gravest_slowdown_is_named_and_idling_is_none() -> None:
    assert slowdown_name(0x4 | 0x40) == "hardware thermal slowdown"
    assert slowdown_name(0x4) == ""
    assert slowdown_name(0x1 | 0x2 | 0x10 | 0x100) == ""


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
    assert set_aside_reason(before, after, own_pids=(10, 11)) == reason


class SteppingCard:
    """A card whose energy counter moves every few readings, as a real one's does."""

    def __init__(self, *joules: float | None) -> None:
        self.left = list(joules)

    def energy(self) -> float | None:
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def sm_clock(self) -> int:
        return 1400


def test_power_is_that_between_the_first_step_of_the_counter_and_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(card_watches, "monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr(card_watches, "sleep", lambda _: None)
    # steps at the second reading and at the sixth, of 1 s each; the first one's time is unknown
    stepping = SteppingCard(100.0, 100.0, 130.0, 130.0, 130.0, 130.0, 170.0, 170.0)
    assert under_load([stepping], 10.0) == pytest.approx((10.0, 1400.0))
    assert math.isnan(under_load([SteppingCard(100.0, 130.0)], 10.0).power)
    assert math.isnan(under_load([SteppingCard(None)], 10.0).power)


def test_two_cards_power_is_the_sum_of_each_ones_between_its_own_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(card_watches, "monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr(card_watches, "sleep", lambda _: None)
    early = SteppingCard(0.0, 30.0, 30.0, 30.0, 60.0, 60.0, 60.0)  # 10 W
    late = SteppingCard(0.0, 0.0, 0.0, 5.0, 5.0, 10.0, 10.0)  # 2.5 W
    assert under_load([early, late], 8.0).power == pytest.approx(12.5)
    assert math.isnan(under_load([early, SteppingCard(1.0)], 8.0).power)


def test_the_state_of_two_cards_is_one() -> None:
    hot = state(slowdown="power brake", memory_errors=1, held={10: 100, 11: 5})
    both = GpuState.joined([state(compute_pids=frozenset({12}), held={10: 20}), hot])
    assert both == GpuState(2.0, "power brake", frozenset({10, 12}), 1, held={10: 120, 11: 5})
    unknown = GpuState(None, None, None)
    assert GpuState.joined([GOOD, unknown]) == replace(GOOD, energy=None)
    assert GpuState.joined([unknown, unknown]) == unknown


def test_what_a_worker_holds_is_unknown_where_none_of_its_processes_is_listed() -> None:
    listed = card(nvmlDeviceGetComputeRunningProcesses=processes(10, 1))
    watches = GpuWatches(FakeNvml({f"GPU-{FIRST}": listed})).group([FIRST])
    assert held_by(10, watches) == 1 << 30
    assert math.isnan(held_by(11, watches))
    assert math.isnan(held_by(10, ()))


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
