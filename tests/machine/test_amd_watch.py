"""The watch on an AMD card, against an amdsmi that answers as its documentation says."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from perfci.measure.machine.card_watches import GpuWatches
from perfci.measure.machine.gpu_watch import GpuState, set_aside_reason
from perfci.worker.devices import cuda

FIRST, SECOND = "00112233445566aa", "ffeeddccbbaa9988"
FUNCTIONS = {
    "amdsmi_get_gpu_asic_info": {"asic_serial": "0x00112233445566AA"},
    "amdsmi_get_energy_count": {"energy_accumulator": 2_000_000, "counter_resolution": 15.3},
    "amdsmi_get_gpu_metrics_info": {
        "ppt_residency_acc": 7,
        "vr_thm_residency_acc": 7,
        "throttle_status": "N/A",
    },
    "amdsmi_get_gpu_process_list": [{"pid": 7, "memory_usage": {"vram_mem": 1 << 30}}],
    "amdsmi_get_gpu_total_ecc_count": {"correctable_count": 5, "uncorrectable_count": 0},
    "amdsmi_get_gpu_perf_level": "AMDSMI_DEV_PERF_LEVEL_AUTO",
}


class FakeAmdsmi:
    """The module, with cards that answer by function; an exception is raised."""

    class AmdSmiException(Exception):
        pass

    def __init__(self, *cards: Mapping[str, Any], init: Exception | None = None) -> None:
        self.cards = [{**FUNCTIONS, **answers} for answers in cards]
        self.init = init

    def amdsmi_init(self) -> None:
        if self.init:
            raise self.init

    def amdsmi_get_processor_handles(self) -> list[dict[str, Any]]:
        return self.cards

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise AttributeError(name)

        def call(handle: Mapping[str, Any]) -> Any:
            if isinstance(handle[name], Exception):
                raise handle[name]
            return handle[name]

        return call


REFUSED = FakeAmdsmi.AmdSmiException("AMDSMI_STATUS_NOT_SUPPORTED")
OTHER = {"amdsmi_get_gpu_asic_info": {"asic_serial": "0xFFEEDDCCBBAA9988"}}


def test_the_card_is_the_one_that_torch_names() -> None:
    used = {"amdsmi_get_energy_count": {"energy_accumulator": 1e6, "counter_resolution": 1}}
    watches = GpuWatches(amdsmi=FakeAmdsmi({}, {**OTHER, **used}))
    watch = watches.of(f"amd:{SECOND}")
    assert watch is not None
    assert watch.read() == GpuState(1.0, "", frozenset({7}), memory_errors=0, held={7: 1 << 30})
    assert watches.notes() == ()


def test_the_only_card_needs_no_number_and_of_two_none_is_guessed() -> None:
    assert GpuWatches(amdsmi=FakeAmdsmi({})).of("amd:") is not None
    watches = GpuWatches(amdsmi=FakeAmdsmi({}, OTHER))
    assert watches.of("amd:") is None
    assert "2 of amdsmi's cards have the serial number that torch doesn't say" in watches.notes()[0]


@pytest.mark.parametrize(
    ("later", "reason"),
    [
        ({}, ""),
        ({"amdsmi_get_gpu_metrics_info": {"vr_thm_residency_acc": 8}}, "power brake"),
        (
            {"amdsmi_get_gpu_process_list": [{"pid": 7}, {"pid": 9}]},
            "beside a foreign process (9)",
        ),
        (
            {"amdsmi_get_gpu_process_list": [{"pid": 9, "memory_usage": {"vram_mem": 0}}]},
            "",
        ),
        (
            {"amdsmi_get_gpu_total_ecc_count": {"uncorrectable_count": 1}},
            "uncorrected memory errors",
        ),
    ],
)
def test_a_burst_is_excluded_for_what_the_card_did(later: dict[str, Any], reason: str) -> None:
    amdsmi = FakeAmdsmi({})
    watch = GpuWatches(amdsmi=amdsmi).of(f"amd:{FIRST}")
    assert watch is not None
    before = watch.read()
    amdsmi.cards[0].update(later)
    assert set_aside_reason(before, watch.read(), (7,)) == reason


@pytest.mark.parametrize(("status", "slowdown"), [(1, "hardware slowdown"), (0, ""), ("N/A", None)])
def test_a_card_before_mi300_says_whether_it_is_throttled_now(
    status: object, slowdown: str | None
) -> None:
    older = {"amdsmi_get_gpu_metrics_info": {"throttle_status": status}}
    watch = GpuWatches(amdsmi=FakeAmdsmi(older)).of("amd:")
    assert watch is not None
    assert watch.read().slowdown == slowdown


def test_what_amdsmi_refuses_is_noted_and_the_rest_is_read() -> None:
    watches = GpuWatches(amdsmi=FakeAmdsmi({"amdsmi_get_energy_count": REFUSED}))
    watch = watches.of("amd:")
    assert watch is not None
    assert watch.read().compute_pids == frozenset({7})
    assert watch.read().energy is None
    assert watches.notes() == (f"amdsmi can't read the card's energy ({REFUSED}).",)


def test_clocks_that_the_user_set_are_noted() -> None:
    manual = {"amdsmi_get_gpu_perf_level": "AMDSMI_DEV_PERF_LEVEL_MANUAL"}
    watches = GpuWatches(amdsmi=FakeAmdsmi(manual))
    watches.of("amd:")
    assert "clocks that its user set" in watches.notes()[0]


def test_a_machine_whose_amdsmi_is_broken_or_missing_has_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = GpuWatches(amdsmi=FakeAmdsmi(init=REFUSED))
    assert broken.of("amd:") is None
    assert str(REFUSED) in broken.notes()[0]
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    missing = GpuWatches()
    assert missing.of("amd:") is None
    assert "amdsmi can't be imported" in missing.notes()[0]


@pytest.mark.parametrize(
    ("uuid", "name"),
    [
        ("30303131-3232-3333-3434-353536366161", f"amd:{FIRST}"),
        ("", "amd:"),
        ("00000000-0000-0000-0000-000000000000", "amd:"),
    ],
)
def test_a_worker_names_an_amd_card_by_its_serial_number(
    monkeypatch: pytest.MonkeyPatch, uuid: str, name: str
) -> None:
    torch = SimpleNamespace(
        version=SimpleNamespace(hip="6.4.2"),
        cuda=SimpleNamespace(get_device_properties=lambda _: SimpleNamespace(uuid=uuid)),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert cuda.opened("cuda:0").uuid() == name
