"""Any other accelerator of torch's (XPU, MPS, a PrivateUse1 backend), by ``torch.accelerator``.

torch 2.6 and newer have it. What a backend doesn't count or time is missing, never zero; one that
can't be waited for is refused. Written from the documentation: of these devices none was at hand
but a simulated one (``tests/worker/simulated_device.cpp``).
"""

from __future__ import annotations

import sys
from typing import Any

from perfci.worker.devices import TorchDevice

_MEMORY = (
    "memory_allocated",
    "max_memory_allocated",
    "max_memory_reserved",
    "reset_peak_memory_stats",
)
_LACKS = (RuntimeError, AttributeError, TypeError, ValueError)
"""What torch raises for what a backend doesn't have: NotImplementedError is a RuntimeError."""


class Accelerator(TorchDevice):
    """A device of torch's current accelerator. Raises ValueError or torch's own where it isn't."""

    def __init__(self, name: str) -> None:
        import torch

        if not hasattr(torch, "accelerator"):
            raise ValueError(f"torch {torch.__version__} is too old: 2.6 has torch.accelerator")
        device = torch.device(name)
        current = torch.accelerator.current_accelerator()
        if current is None or current.type != device.type:
            raise ValueError(f"torch.accelerator is {current.type if current else 'none'} here")
        # Asked in any case: until something has, synchronising does nothing, and says nothing.
        index = torch.accelerator.current_device_index()
        if device.index is None:
            device = torch.device(device.type, index)
        self._torch = torch
        torch.accelerator.synchronize(device)  # one that can't be waited for is refused here
        super().__init__(str(device), device, self._counter(device))
        self._missing = {"energy": "perfci reads it of NVIDIA's and AMD's cards only"}
        if self._memory is None:
            uncounted = f"torch counts no memory of {device.type} devices"
            metrics = ("peak_device_memory", "peak_device_memory_reserved", "memory_growth")
            self._missing |= dict.fromkeys(metrics, uncounted)
        if why := self._untimed_reason():
            self._missing["device_time_p50"] = why

    def missing(self) -> dict[str, str]:
        """Return why it has no such metric, by metric."""
        return self._missing

    def synchronize(self) -> None:
        """Wait until all that was launched has ended."""
        self._torch.accelerator.synchronize(self._device)

    def event(self) -> Any:
        """Return a new timing event."""
        return self._torch.Event(self._device, enable_timing=True)

    def stream(self) -> Any:
        """Return the stream that the work's calls are launched in."""
        return self._torch.accelerator.current_stream(self._device)

    def uuid(self) -> str:
        """Return nothing: NVML doesn't know it."""
        return ""

    def _counter(self, device: Any) -> Any:
        """Return what counts the device's memory: torch 2.9's, or the backend's own module."""
        for module in (self._torch.accelerator, getattr(self._torch, device.type, None)):
            try:
                for name in _MEMORY:
                    getattr(module, name)(device)
            except _LACKS:
                continue
            return module
        return None

    def _untimed_reason(self) -> str:
        try:
            first, last, stream = self.event(), self.event(), self.stream()
            first.record(stream)
            last.record(stream)
            self.synchronize()
            first.elapsed_time(last)
        except _LACKS as error:
            reason = str(error).strip().split("\n", 1)[0]
            return f"torch can't time events of {self._device.type} devices: {reason}"
        return ""


def serves(type_: str) -> bool:
    """Say whether tensors on a torch device of this type are its work: all but CUDA's."""
    return type_ != "cuda"


def in_use() -> str:
    """Return its current device, where it is initialised or can't say whether it is."""
    module = _module()
    if module is None or not getattr(module, "is_initialized", lambda: True)():
        return ""
    accelerator = sys.modules["torch"].accelerator
    return f"{accelerator.current_accelerator().type}:{accelerator.current_device_index()}"


def present() -> bool:
    """Say whether an imported torch sees such a device."""
    return _module() is not None


def facts() -> dict[str, str]:
    """Return the accelerator's type, and its first device."""
    module = _module()
    if module is None:
        return {}
    torch = sys.modules["torch"]
    type_ = torch.accelerator.current_accelerator().type
    name = getattr(module, "get_device_name", lambda _: type_)(0)
    return {
        "device_type": type_,
        "device_name": str(name),
        "device_count": str(torch.accelerator.device_count()),
    }


def opened(name: str) -> Accelerator:
    """Return the accelerator's device ``name``."""
    return Accelerator(name)


def _module() -> Any:
    """Return torch's module of an accelerator that is here and isn't CUDA's, or None."""
    torch: Any = sys.modules.get("torch")
    accelerator: Any = getattr(torch, "accelerator", None)
    current = accelerator.current_accelerator() if accelerator else None
    if current is None or current.type == "cuda":
        return None
    module = getattr(torch, current.type, None)  # a backend that is half registered has none
    return module if module is not None and accelerator.is_available() else None
