"""An AMD card's state around each burst, read through amdsmi. Nothing on the card is set.

Written from ROCm's documentation of amdsmi 6.3 and later, and not yet run on a card.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from perfci.machine.gpu_watch import GpuState, Unwatchable

T = TypeVar("T")
PREFIX = "amd:"
"""Begins what a worker calls an AMD card; its serial number follows, if torch knows it."""
_THROTTLED = (
    ("prochot_residency_acc", "hardware slowdown"),
    ("socket_thm_residency_acc", "hardware thermal slowdown"),
    ("hbm_thm_residency_acc", "hardware thermal slowdown"),
    ("vr_thm_residency_acc", "power brake"),
    ("ppt_residency_acc", "power cap"),
)
"""Counters of MI300 and later that move while the card is throttled; the gravest first."""
_OTHER_VERSIONS = (AttributeError, KeyError, TypeError, ValueError)
"""What an amdsmi that lacks a function, or answers otherwise, raises or causes."""
_ANY = "throttle_status"
"""What cards before them have: whether they are throttled now."""


class AmdWatch:
    """Reads one card. Made by ``open_amd_watch``; the fields are as those of ``GpuWatch``."""

    library = "amdsmi"

    def __init__(self, amdsmi: Any, handle: Any) -> None:
        self._amdsmi = amdsmi
        self._handle = handle
        self._counted: dict[str, int] = {}
        self.unknown: dict[str, str] = {}
        level = self._told("clocks", lambda: str(amdsmi.amdsmi_get_gpu_perf_level(handle)))
        self.clocks_set = bool(level) and not str(level).endswith(("AUTO", "UNKNOWN"))

    def read(self) -> GpuState:
        """Return the state now: slowdowns since the last reading. Called between bursts."""
        return GpuState(
            energy=self._told("energy", self._energy),
            slowdown=self._told("slowdowns", self._slowdown),
            compute_pids=self._told("processes", self._pids),
            memory_errors=self._told("memory errors", self._memory_errors),
        )

    def _energy(self) -> float:
        found = self._amdsmi.amdsmi_get_energy_count(self._handle)
        return float(found["energy_accumulator"]) * float(found["counter_resolution"]) / 1e6

    def _slowdown(self) -> str:
        """amdsmi has ``"N/A"`` for what a card doesn't count."""
        found = self._amdsmi.amdsmi_get_gpu_metrics_info(self._handle)
        counted = {name: found[name] for name, _ in _THROTTLED if isinstance(found.get(name), int)}
        before, self._counted = self._counted, counted
        for name, slowdown in _THROTTLED:
            if name in before and counted.get(name, 0) > before[name]:
                return slowdown
        if not counted and not isinstance(found.get(_ANY), int):
            raise ValueError("the card doesn't count them")
        return "hardware slowdown" if not counted and found[_ANY] else ""

    def _pids(self) -> frozenset[int]:
        """Return who has memory on the card: a process that opened the driver is on all cards."""
        listed = self._amdsmi.amdsmi_get_gpu_process_list(self._handle)
        return frozenset(
            int(one["pid"]) for one in listed if one.get("memory_usage", {}).get("vram_mem", 1)
        )

    def _memory_errors(self) -> int:
        return int(self._amdsmi.amdsmi_get_gpu_total_ecc_count(self._handle)["uncorrectable_count"])

    def _told(self, what: str, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except (self._amdsmi.AmdSmiException, *_OTHER_VERSIONS) as error:
            self.unknown.setdefault(what, str(error).strip() or type(error).__name__)
            return None


def open_amd_watch(amdsmi: Any, serial: str) -> AmdWatch:
    """Return a watch on the card of that serial number. Raises Unwatchable with the reason.

    ``amdsmi`` stands for the module, which is imported where it is None. Without a number the
    machine's only card is meant.
    """
    if amdsmi is None:
        try:
            import amdsmi  # type: ignore[import-not-found,no-redef]
        except Exception as error:  # it looks for its library in many places, and raises as many
            raise Unwatchable(f"amdsmi can't be imported: {error}") from error
    try:
        amdsmi.amdsmi_init()
        handles = list(amdsmi.amdsmi_get_processor_handles())
        numbers = [_serial(amdsmi, handle) for handle in handles]
    except amdsmi.AmdSmiException as error:
        raise Unwatchable(f"amdsmi says: {error}") from error
    if serial:
        handles = [one for one, number in zip(handles, numbers, strict=True) if number == serial]
    if len(handles) != 1:
        known = serial or "that torch doesn't say"
        raise Unwatchable(f"{len(handles)} of amdsmi's cards have the serial number {known}")
    return AmdWatch(amdsmi, handles[0])


def _serial(amdsmi: Any, handle: Any) -> str:
    number = str(amdsmi.amdsmi_get_gpu_asic_info(handle)["asic_serial"])
    return number.lower().removeprefix("0x")
