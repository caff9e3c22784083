"""Any other accelerator of torch's (XPU, MPS, a PrivateUse1 backend), by ``torch.accelerator``.

``torch.accelerator`` came with torch 2.6. A metric that a backend doesn't count or time is missing,
never zero. A device that can't be waited for is refused.

This module was written from the documentation and tested with a simulated device only
(``tests/worker/simulated_device.cpp``).
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
"""Functions that a module must have to count a device's memory."""
_LACKS = (RuntimeError, AttributeError, TypeError, ValueError)
"""Errors that torch raises for features a backend lacks. RuntimeError has NotImplementedError."""


class Accelerator(TorchDevice):
    """A device of torch's current accelerator.

    Raises ValueError, or torch's own error, if ``name`` is not such a device.
    """

    def __init__(self, name: str) -> None:
        import torch

        if not hasattr(torch, "accelerator"):
            raise ValueError(f"torch {torch.__version__} is too old: 2.6 has torch.accelerator")
        device = torch.device(name)
        current = torch.accelerator.current_accelerator()
        if current is None or current.type != device.type:
            raise ValueError(f"torch.accelerator is {current.type if current else 'none'} here")
        # Called even if ``name`` has an index: without an earlier call, synchronising silently
        # does nothing.
        index = torch.accelerator.current_device_index()
        if device.index is None:
            device = torch.device(device.type, index)
        self._torch = torch
        torch.accelerator.synchronize(device)  # raises for a device that can't be waited for
        super().__init__(str(device), device, self._counter(device))
        self._missing: dict[str, str] = {}
        if self._memory is None:
            uncounted = f"torch counts no memory of {device.type} devices"
            metrics = ("peak_device_memory", "peak_device_memory_reserved", "memory_growth")
            self._missing = dict.fromkeys(metrics, uncounted)
        if why := self._untimed_reason():
            self._missing["device_time_p50"] = why

    def missing(self) -> dict[str, str]:
        """Return the metrics that the device lacks, each with the reason."""
        return self._missing

    def synchronize(self) -> None:
        """Wait until all launched work has ended."""
        self._torch.accelerator.synchronize(self._device)

    def event(self) -> Any:
        """Return a new timing event."""
        return self._torch.Event(self._device, enable_timing=True)

    def stream(self) -> Any:
        """Return the stream that the work's calls are launched in."""
        return self._torch.accelerator.current_stream(self._device)

    def _counter(self, device: Any) -> Any:
        """Return the module that counts the device's memory, or None.

        It is ``torch.accelerator`` from torch 2.9 on, or else the backend's own module.
        """
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
    """Return whether this module serves torch devices of this type: all types except CUDA."""
    return type_ != "cuda"


def in_use() -> tuple[str, ...]:
    """Return the accelerator's current device, if the accelerator is initialised.

    A backend without ``is_initialized`` counts as initialised.
    """
    module = _module()
    if module is None or not getattr(module, "is_initialized", lambda: True)():
        return ()
    accelerator = sys.modules["torch"].accelerator
    return (f"{accelerator.current_accelerator().type}:{accelerator.current_device_index()}",)


def present() -> bool:
    """Return whether torch is imported and sees such a device."""
    return _module() is not None


def facts() -> dict[str, str]:
    """Return the accelerator's type, its first device's name, and the number of devices."""
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


opened = Accelerator


def _module() -> Any:
    """Return torch's module of the machine's accelerator. None if it has none, or CUDA."""
    torch: Any = sys.modules.get("torch")
    accelerator: Any = getattr(torch, "accelerator", None)
    current = accelerator.current_accelerator() if accelerator else None
    if current is None or current.type == "cuda":
        return None
    module = getattr(torch, current.type, None)  # missing if the backend is half registered
    return module if module is not None and accelerator.is_available() else None
