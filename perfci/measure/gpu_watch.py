"""The card's state around each burst, read through NVML. Nothing on the card is set.

A burst under thermal or power slowdown, or beside a foreign process, is set aside.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from perfci.errors import PerfciError


@dataclass(frozen=True, slots=True)
class GpuState:
    """One reading. Clocks in MHz, temperature in °C, power in W, energy in J since driver load."""

    sm_clock: int
    memory_clock: int
    temperature: int
    power: float
    energy: float | None
    slowdown: str
    compute_pids: frozenset[int]


class GpuWatch:
    """Reads one device. Made by ``open_gpu_watch``."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._reasons = getattr(
            nvml,
            "nvmlDeviceGetCurrentClocksEventReasons",
            getattr(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", None),
        )

    def read(self) -> GpuState:
        """Return the state now. Called between bursts, never inside one."""
        nvml, handle = self._nvml, self._handle
        return GpuState(
            sm_clock=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            memory_clock=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            temperature=nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            power=nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
            energy=self._energy(),
            slowdown=slowdown_name(self._reasons(handle) if self._reasons else 0),
            compute_pids=frozenset(
                process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)
            ),
        )

    def _energy(self) -> float | None:
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3
        except self._nvml.NVMLError_NotSupported:
            return None


_SLOWDOWNS = (
    (0x0000000000000008, "hardware slowdown"),
    (0x0000000000000020, "software thermal slowdown"),
    (0x0000000000000040, "hardware thermal slowdown"),
    (0x0000000000000080, "power brake"),
    (0x0000000000000004, "power cap"),
)


def slowdown_name(reasons: int) -> str:
    """Return the gravest slowdown in NVML's bit mask ``reasons``, or an empty text."""
    return next((name for bit, name in _SLOWDOWNS if reasons & bit), "")


def set_aside_reason(before: GpuState, after: GpuState, own_pids: Collection[int]) -> str:
    """Return why a burst between the two readings is left out, or an empty text.

    In a container NVML shows other process ids; foreign ones are told only where ours are seen.
    """
    if slowdown := before.slowdown or after.slowdown:
        return slowdown
    seen = before.compute_pids | after.compute_pids
    foreign = seen - set(own_pids)
    if foreign and seen & set(own_pids):
        return f"beside a foreign process ({min(foreign)})"
    return ""


def open_gpu_watch(index: int = 0) -> GpuWatch | None:
    """Return a watch on device ``index``, or None on a machine without NVIDIA's driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
        return GpuWatch(pynvml, pynvml.nvmlDeviceGetHandleByIndex(index))
    except (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded):
        return None
    except pynvml.NVMLError as error:
        raise PerfciError(
            "nvml", f"NVML can't be read: {error}", "Run `nvidia-smi`; it should work."
        ) from error
