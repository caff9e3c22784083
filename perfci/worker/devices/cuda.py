"""torch's CUDA devices. ROCm's are included: torch uses CUDA's names for them."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Any

from perfci.metrics.memory import cards_in_use
from perfci.worker.devices import TorchDevice

_SHARED = (0, 0)
"""Id of the allocator's common pool, for work outside CUDA graphs. Each graph has its own pool."""
_TRIAL_CYCLES = 1_000_000
"""Cycles of the spinning kernel that measures the device's cycles per second."""
_LONGEST_HOLD_S = 0.05
DRIVER = Path("/proc/driver/nvidia/version")
"""NVIDIA's driver writes its version here. The file doesn't exist without the driver."""


class Cuda(TorchDevice):
    """A CUDA device. Created only if the work names it, or was seen to run on it."""

    def __init__(self, name: str) -> None:
        import torch

        if ":" not in name:
            name = f"cuda:{torch.cuda.current_device()}"
        super().__init__(name, name, torch.cuda)
        self._cuda = torch.cuda
        self._cycles_per_s = 0.0

    def missing(self) -> dict[str, str]:
        """Return the metrics that the device lacks: none."""
        return {}

    def uuid(self) -> str:
        """Return the UUID without NVML's prefix, or an empty text if torch doesn't know it.

        An AMD card has none that NVML knows.
        """
        import torch

        rocm = getattr(torch.version, "hip", None) is not None
        properties = self._cuda.get_device_properties(self.name)
        return "" if rocm else str(getattr(properties, "uuid", ""))

    def synchronize(self) -> None:
        """Wait until all launched work has ended."""
        self._cuda.synchronize(self.name)

    def peaks(self) -> dict[str, float]:
        """Return the peaks since ``reset_peaks``, in bytes, CUDA graphs' private pools included.

        A replay uses its graph's whole pool, but the allocator counts a pool's memory only while
        the graph is captured. So the unallocated rest of each pool is added here.
        """
        peaks = super().peaks()
        index = int(self.name.partition(":")[2])
        peaks["peak_device_memory"] += sum(
            segment["total_size"] - segment["allocated_size"]
            for segment in self._cuda.memory_snapshot()
            if segment["device"] == index and segment.get("segment_pool_id", _SHARED) != _SHARED
        )
        return peaks

    def event(self) -> Any:
        """Return a new timing event."""
        return self._cuda.Event(enable_timing=True)

    def hold(self, seconds: float) -> None:
        """Launch a kernel in the current stream that spins for ``seconds``, 50 ms at most."""
        if not self._cycles_per_s:
            self._cycles_per_s = self._spin_rate()
        with self._cuda.device(self.name):
            self._cuda._sleep(int(min(seconds, _LONGEST_HOLD_S) * self._cycles_per_s))  # noqa: SLF001

    def _spin_rate(self) -> float:
        """Return the spinning kernel's cycles per second, by the faster of two runs."""
        first, last = self.event(), self.event()
        best_ms = math.inf
        for _ in range(2):
            first.record(self.stream())
            with self._cuda.device(self.name):
                self._cuda._sleep(_TRIAL_CYCLES)  # noqa: SLF001 (torch's own tests spin by it)
            last.record(self.stream())
            self.synchronize()
            best_ms = min(best_ms, first.elapsed_time(last))
        return _TRIAL_CYCLES / (best_ms / 1e3)

    def stream(self) -> Any:
        """Return the stream that the work's calls are launched in.

        Events are recorded with it explicitly, because torch's current device may be another one.
        """
        return self._cuda.current_stream(self.name)


def serves(type_: str) -> bool:
    """Return whether this module serves torch devices of this type."""
    return type_ == "cuda"


def in_use() -> tuple[str, ...]:
    """Return the devices of this process by torch's names."""
    return tuple(f"cuda:{card}" for card in cards_in_use())


def present() -> bool:
    """Return whether NVIDIA's driver is there, or torch is imported and sees a device."""
    torch = sys.modules.get("torch")
    return DRIVER.exists() or (torch is not None and torch.cuda.is_available())


def facts() -> dict[str, str]:
    """Return torch's CUDA version, and facts about its devices if it sees any."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return {}
    result = {"cuda": str(torch.version.cuda or "none")}
    if hip := getattr(torch.version, "hip", None):
        result["hip"] = str(hip)
    if torch.cuda.is_available():
        result["device_name"] = torch.cuda.get_device_name(0)
        result["device_count"] = str(torch.cuda.device_count())
        result["cudnn"] = str(torch.backends.cudnn.version())
        driver = DRIVER.read_text("utf-8", errors="replace") if DRIVER.exists() else ""
        version = re.search(r"\b\d{3,}\.\d+(\.\d+)?\b", driver)  # torch knows only its CUDA's
        result["driver"] = version[0] if version else "unknown"
    return result


def cards() -> tuple[str, ...]:
    """Return the UUIDs of all devices that torch sees, as ``Cuda.uuid`` gives them."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return ()
    return tuple(Cuda(f"cuda:{index}").uuid() for index in range(torch.cuda.device_count()))


opened = Cuda
