"""The device that a work runs on: the host itself, or a CUDA device."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from perfci.worker.failing import Unusable

OF_A_DEVICE = ("peak_device_memory", "peak_device_memory_reserved", "device_time_p50", "energy")
"""The metrics that only what runs on a device has."""
DRIVER = Path("/proc/driver/nvidia/version")


class Cuda:
    """A CUDA device of torch's. Made only where a work is known, or has, to run on one."""

    def __init__(self, name: str) -> None:
        import torch

        self._cuda = torch.cuda
        self._name = name

    def uuid(self) -> str:
        """Return its UUID without NVML's prefix, or an empty text where this torch can't tell."""
        return str(getattr(self._cuda.get_device_properties(self._name), "uuid", ""))

    def synchronize(self) -> None:
        """Wait until all that was launched has ended."""
        self._cuda.synchronize(self._name)

    def event(self) -> Any:
        """Return a new timing event."""
        return self._cuda.Event(enable_timing=True)

    def stream(self) -> Any:
        """Return the stream that the work's calls are launched in.

        Named to each event: the device may not be torch's current one.
        """
        return self._cuda.current_stream(self._name)

    def reset_peaks(self) -> None:
        """Start the memory peaks anew: warm calls are measured apart from set-up."""
        self._cuda.reset_peak_memory_stats(self._name)

    def peaks(self) -> dict[str, float]:
        """Return what the warm calls needed, and what the process held, in bytes."""
        return {
            "peak_device_memory": float(self._cuda.max_memory_allocated(self._name)),
            "peak_device_memory_reserved": float(self._cuda.max_memory_reserved(self._name)),
        }

    def allocated(self) -> float:
        """Return the bytes that live tensors hold now."""
        return float(self._cuda.memory_allocated(self._name))


def devices_of(output: Any) -> frozenset[str]:
    """Return the devices of the tensors in ``output``; none where torch isn't loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return frozenset()
    from torch.utils import _pytree

    leaves = _pytree.tree_leaves(output)
    return frozenset(str(leaf.device) for leaf in leaves if isinstance(leaf, torch.Tensor))


def open_device(name: str, output: Any) -> Cuda | None:
    """Return the CUDA device that the work runs on, or None on the host.

    A plain callable's outputs tell. Where they are on no CUDA device, but the process uses CUDA
    (a step that returns nothing, or a number), the current device is synchronised: otherwise the
    launch alone would be timed.
    """
    if name:
        return Cuda(name) if name.startswith("cuda") else None
    on_cuda = sorted(device for device in devices_of(output) if device.startswith("cuda"))
    if on_cuda:
        return Cuda(on_cuda[0])
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return Cuda(f"cuda:{torch.cuda.current_device()}")
    return None


def why_on_host(torch: Any, driver: Path = DRIVER) -> str:
    """Return why a work that ran on no device didn't: there is none, or it used none."""
    if driver.exists() or (torch is not None and torch.cuda.is_available()):
        return "it ran on the host, on no CUDA device"
    return "no CUDA device"


def check_devices(name: str, output: Any) -> None:
    """Raise Unusable where an output is on a device that isn't synchronised."""
    found = devices_of(output)
    if name:
        index = ":" in name
        strange = frozenset(one for one in found if (one if index else one.split(":")[0]) != name)
        expected = f"the work runs on {name}, but its output is on"
    else:
        on_cuda = sorted(one for one in found if one.startswith("cuda"))
        known = {"cpu", "meta", *on_cuda[:1]}  # a meta tensor has no data to wait for
        strange = found - known
        expected = "perfci synchronises with one CUDA device and the host, but an output is on"
    if strange:
        raise Unusable(
            "wrong_device",
            f"{expected} {', '.join(sorted(strange))}: it could not be synchronised; "
            "pass device= or move the output inside the benchmark",
        )
