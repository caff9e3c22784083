"""CUDA devices of torch's; ROCm's too, which torch calls by the same names."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from perfci.errors import Unusable
from perfci.worker.devices import TorchDevice

_SHARED = (0, 0)
"""The id of the allocator's pool for all work that is no graph's."""
_TRIAL_CYCLES = 1_000_000
_LONGEST_HOLD_S = 0.05
DRIVER = Path("/proc/driver/nvidia/version")


class Cuda(TorchDevice):
    """A CUDA device. Made only where a work is known, or has, to run on one."""

    def __init__(self, name: str) -> None:
        import torch

        super().__init__(name, name, torch.cuda)
        self._cuda = torch.cuda
        self._rocm = getattr(torch.version, "hip", None) is not None
        self._cycles_per_s = 0.0

    def missing(self) -> dict[str, str]:
        """Return why it has no such metric, by metric."""
        return {}

    def uuid(self) -> str:
        """Return its UUID without NVML's prefix, or an empty text where torch doesn't know it.

        An AMD card's is ``amd:`` and its serial number.
        """
        uuid = str(getattr(self._cuda.get_device_properties(self.name), "uuid", ""))
        return f"amd:{_serial_in(uuid)}" if self._rocm else uuid

    def synchronize(self) -> None:
        """Wait until all that was launched has ended."""
        self._cuda.synchronize(self.name)

    def peaks(self) -> dict[str, float]:
        """Return the peaks, in bytes. A CUDA graph's replays use its private pool as a whole.

        The allocator counts what calls took of that pool only while the graph was captured.
        """
        peaks = super().peaks()
        index = self._cuda.current_device() if ":" not in self.name else int(self.name[5:])
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
        self._cuda._sleep(int(min(seconds, _LONGEST_HOLD_S) * self._cycles_per_s))  # noqa: SLF001

    def _spin_rate(self) -> float:
        """Return how many cycles the spinning kernel makes in a second: the better of two runs."""
        first, last = self.event(), self.event()
        best_ms = math.inf
        for _ in range(2):
            first.record(self.stream())
            self._cuda._sleep(_TRIAL_CYCLES)  # noqa: SLF001 (torch's own tests spin by it)
            last.record(self.stream())
            self.synchronize()
            best_ms = min(best_ms, first.elapsed_time(last))
        return _TRIAL_CYCLES / (best_ms / 1e3)

    def l2_flusher(self) -> Callable[[], object]:
        """Return what writes over a buffer as large as the L2 cache, as NVBench does.

        It stays allocated: the peaks of the device's memory have it.
        """
        import torch

        size = int(getattr(self._cuda.get_device_properties(self.name), "L2_cache_size", 0))
        if not size:
            raise Unusable(
                "no_flush", f"torch doesn't say how large the L2 cache of {self.name} is"
            )
        buffer = torch.empty(size, dtype=torch.uint8, device=self.name)
        return cast("Callable[[], object]", buffer.zero_)

    def stream(self) -> Any:
        """Return the stream that the work's calls are launched in.

        Named to each event: the device may not be torch's current one.
        """
        return self._cuda.current_stream(self.name)


def _serial_in(uuid: str) -> str:
    """Return the serial number of an AMD card: HIP has its hexadecimal digits as the UUID's bytes.

    An empty text for a UUID that holds none.
    """
    try:
        serial = bytes.fromhex(uuid.replace("-", "")).decode("ascii").lower()
        int(serial, 16)
    except ValueError:
        return ""
    return serial


def serves(type_: str) -> bool:
    """Say whether tensors on a torch device of this type are its work."""
    return type_ == "cuda"


def in_use() -> str:
    """Return torch's current device where the process has initialised CUDA."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return ""
    return f"cuda:{torch.cuda.current_device()}"


def present() -> bool:
    """Say whether there is NVIDIA's driver, or a device that an imported torch sees."""
    torch = sys.modules.get("torch")
    return DRIVER.exists() or (torch is not None and torch.cuda.is_available())


def facts() -> dict[str, str]:
    """Return torch's CUDA, and its first device where it has one."""
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
        result["driver"] = driver_version(DRIVER) or "unknown"
    return result


def opened(name: str) -> Cuda:
    """Return the CUDA device ``name``."""
    return Cuda(name)


def driver_version(path: Path) -> str | None:
    """Return NVIDIA's kernel driver version; torch knows only the CUDA version it serves."""
    if not path.exists():
        return None
    match = re.search(
        r"\b\d{3,}\.\d+(\.\d+)?\b", path.read_text(encoding="utf-8", errors="replace")
    )
    return match.group() if match else None
