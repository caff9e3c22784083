"""The state of an AMD card, read through amdsmi."""

from __future__ import annotations

from typing import Any

from perfci.measure.machine.gpu_watch import AT_LIMIT, CardWatch, UnwatchableCard

PREFIX = "amd:"
"""Begins a worker's name for an AMD card. The serial number follows, if torch knows it."""
_THROTTLED = (
    ("prochot_residency_acc", "hardware slowdown"),
    ("socket_thm_residency_acc", "hardware thermal slowdown"),
    ("hbm_thm_residency_acc", "hardware thermal slowdown"),
    ("vr_thm_residency_acc", "power brake"),
    ("ppt_residency_acc", AT_LIMIT),
)
"""Counters of MI300 and later that grow while the card is throttled, the gravest first."""
_OTHER_VERSIONS = (AttributeError, KeyError, TypeError, ValueError)
"""Errors that occur if amdsmi lacks a function or answers in another form."""
_ANY = "throttle_status"
"""The field of cards before MI300: whether the card is throttled now."""


class AmdWatch(CardWatch):
    """Reads one card by amdsmi. Made by ``open_amd_watch``. A slowdown is since the last reading.

    Written from ROCm's documentation of amdsmi 6.3 and later, and not yet run on a card.
    """

    library = "amdsmi"

    def __init__(self, amdsmi: Any, handle: Any) -> None:
        super().__init__((amdsmi.AmdSmiException, *_OTHER_VERSIONS))
        self._amdsmi = amdsmi
        self._handle = handle
        self._counted: dict[str, int] = {}
        level = self._reading("clocks", lambda: str(amdsmi.amdsmi_get_gpu_perf_level(handle)))
        self.clocks_set = bool(level) and not str(level).endswith(("AUTO", "UNKNOWN"))

    def _energy(self) -> float:
        counter = self._amdsmi.amdsmi_get_energy_count(self._handle)
        return float(counter["energy_accumulator"]) * float(counter["counter_resolution"]) / 1e6

    def _throttling(self) -> str:
        """See ``CardWatch``. amdsmi answers ``"N/A"`` for a counter that the card lacks."""
        metrics = self._amdsmi.amdsmi_get_gpu_metrics_info(self._handle)
        counted = {
            name: metrics[name] for name, _ in _THROTTLED if isinstance(metrics.get(name), int)
        }
        before, self._counted = self._counted, counted
        for name, slowdown in _THROTTLED:
            if name in before and counted.get(name, 0) > before[name]:
                return slowdown
        if not counted and not isinstance(metrics.get(_ANY), int):
            raise ValueError("the card doesn't count them")
        return "hardware slowdown" if not counted and metrics[_ANY] else ""

    def _processes(self) -> dict[int, int | None]:
        """Return the processes with memory on the card, each with its bytes there.

        amdsmi lists a process that opened the driver on all cards.
        """
        listed = self._amdsmi.amdsmi_get_gpu_process_list(self._handle)
        held = {
            int(process["pid"]): process.get("memory_usage", {}).get("vram_mem")
            for process in listed
        }
        return {pid: size for pid, size in held.items() if size != 0}

    def _memory_errors(self) -> int:
        return int(self._amdsmi.amdsmi_get_gpu_total_ecc_count(self._handle)["uncorrectable_count"])


def open_amd_watch(amdsmi: Any, serial: str) -> AmdWatch:
    """Return a watch on the card with that serial number. Raises UnwatchableCard.

    ``amdsmi`` stands for the module, which is imported by default. Without a serial number, the
    machine's only card is meant.
    """
    if amdsmi is None:
        try:
            import amdsmi  # type: ignore[import-not-found,no-redef]
        except Exception as error:  # it searches many places for its library, with as many errors
            raise UnwatchableCard(f"amdsmi can't be imported: {error}") from error
    try:
        amdsmi.amdsmi_init()
        handles = list(amdsmi.amdsmi_get_processor_handles())
        numbers = [_serial(amdsmi, handle) for handle in handles]
    except amdsmi.AmdSmiException as error:
        raise UnwatchableCard(f"amdsmi says: {error}") from error
    if serial:
        handles = [
            candidate
            for candidate, number in zip(handles, numbers, strict=True)
            if number == serial
        ]
    if len(handles) != 1:
        known = serial or "that torch doesn't say"
        raise UnwatchableCard(f"{len(handles)} of amdsmi's cards have the serial number {known}")
    return AmdWatch(amdsmi, handles[0])


def _serial(amdsmi: Any, handle: Any) -> str:
    number = str(amdsmi.amdsmi_get_gpu_asic_info(handle)["asic_serial"])
    return number.lower().removeprefix("0x")
