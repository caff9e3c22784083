"""The device that a work runs on: the host itself, or a CUDA device."""

from __future__ import annotations

import sys
from typing import Any


class Cuda:
    """A CUDA device of torch's. Made only where a work's outputs are on one."""

    def __init__(self, name: str) -> None:
        import torch

        self._cuda = torch.cuda
        self._name = name

    def synchronize(self) -> None:
        """Wait until all that was launched has ended."""
        self._cuda.synchronize(self._name)

    def event(self) -> Any:
        """Return a new timing event."""
        return self._cuda.Event(enable_timing=True)

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
    """Return the device types of the tensors in ``output``; empty where torch isn't loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return frozenset()
    from torch.utils import _pytree

    leaves = _pytree.tree_leaves(output)
    return frozenset(leaf.device.type for leaf in leaves if isinstance(leaf, torch.Tensor))


def open_device(name: str, output: Any) -> Cuda | None:
    """Return the CUDA device that the work runs on, or None on the host."""
    if name.startswith("cuda"):
        return Cuda(name)
    if not name and "cuda" in devices_of(output):
        return Cuda("cuda")
    return None
