"""The devices that work runs on next to the host. Adding one takes one module.

A module (of this package, or named by an entry point of the group ``perfci.devices`` in the Python
that measures) has the attributes of ``DeviceKind``. The host itself is not a device: its work is
done when a call returns, so there is nothing to wait for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from perfci import metrics
from perfci.errors import Unusable
from perfci.plugins import added_plugins, built_in_modules

GROUP = "perfci.devices"
_HOST = frozenset({"cpu", "meta"})  # a meta tensor has no data to wait for


class BurstDevice(metrics.Device, Protocol):
    """One device, whose work goes on after the host's call has returned.

    A metric's methods are not called if ``missing`` names the metric: ``event`` and ``stream`` are
    for ``device_time_p50``, ``reset_peaks`` and ``peaks`` for ``peak_device_memory``, and
    ``allocated`` for ``memory_growth``.

    Two methods are optional. A device that NVML may watch has ``uuid()``, which returns NVML's
    UUID, or an empty text if it is unknown. A device that can be kept busy has ``hold(seconds)``,
    which launches idle work of that length in the current stream. The device's own time of a call
    then contains no waiting for launches.
    """

    @property
    def name(self) -> str:
        """Return the device's name as torch writes it, with its index: ``cuda:0``."""

    def synchronize(self) -> None:
        """Wait until all launched work has ended."""

    def event(self) -> Any:
        """Return a new point in a stream of the device's work, like torch's events.

        ``record(stream)`` puts it behind the work launched so far, and ``elapsed_time(later)``
        returns the time in ms between two points that have been reached.
        """

    def stream(self) -> Any:
        """Return the stream that the work's calls are launched in."""


class DeviceGroup:
    """Several devices that a call uses, as one: all are waited for, and their memory is summed."""

    def __init__(self, members: Sequence[BurstDevice]) -> None:
        self.members = tuple(members)
        self.name = ", ".join(member.name for member in self.members)

    def missing(self) -> dict[str, str]:
        """Return the metrics that a member lacks, each with the reason."""
        return {metric: why for member in self.members for metric, why in member.missing().items()}

    def synchronize(self) -> None:
        """Wait until all launched work has ended."""
        for member in self.members:
            member.synchronize()

    def event(self) -> _GroupEvent:
        """Return an event of each member."""
        return _GroupEvent([member.event() for member in self.members])

    def stream(self) -> tuple[Any, ...]:
        """Return each member's stream."""
        return tuple(member.stream() for member in self.members)

    def hold(self, seconds: float) -> None:
        """Keep all members busy that can be."""
        for hold in (getattr(member, "hold", None) for member in self.members):
            if hold:
                hold(seconds)

    def reset_peaks(self) -> None:
        """Reset all members' peaks."""
        for member in self.members:
            member.reset_peaks()

    def peaks(self) -> dict[str, float]:
        """Return the sums of the members' peaks, in bytes."""
        sums: dict[str, float] = {}
        for member in self.members:
            for metric, peak in member.peaks().items():
                sums[metric] = sums.get(metric, 0.0) + peak
        return sums

    def allocated(self) -> float:
        """Return the bytes that live tensors hold now."""
        return sum(member.allocated() for member in self.members)


class _GroupEvent:
    """An event of each member of a group."""

    def __init__(self, events: Sequence[Any]) -> None:
        self._events = events

    def record(self, streams: Sequence[Any]) -> None:
        """Record each member's event in its own stream."""
        for event, stream in zip(self._events, streams, strict=True):
            event.record(stream)

    def elapsed_time(self, other: _GroupEvent) -> float:
        """Return the longest of the members' times, in ms. Their clocks can't be compared."""
        pairs = zip(self._events, other._events, strict=True)
        return float(max(first.elapsed_time(last) for first, last in pairs))


def members(device: BurstDevice | None) -> tuple[BurstDevice, ...]:
    """Return the devices that ``device`` stands for: a group's members, or itself."""
    if isinstance(device, DeviceGroup):
        return device.members
    return (device,) if device else ()


class TorchDevice:
    """A device whose memory is counted by ``memory``, a module of torch.

    ``name`` is the device's name as perfci writes it, ``device`` what the module is called with.
    """

    def __init__(self, name: str, device: Any, memory: Any) -> None:
        self.name = name
        self._device = device
        self._memory = memory

    def reset_peaks(self) -> None:
        """Reset the memory peaks, so that the peaks of warm calls don't include set-up."""
        self._memory.reset_peak_memory_stats(self._device)

    def peaks(self) -> dict[str, float]:
        """Return the peaks since ``reset_peaks``, in bytes: of live tensors, and of memory held."""
        return {
            "peak_device_memory": float(self._memory.max_memory_allocated(self._device)),
            "peak_device_memory_reserved": float(self._memory.max_memory_reserved(self._device)),
        }

    def allocated(self) -> float:
        """Return the bytes that live tensors hold now."""
        return float(self._memory.memory_allocated(self._device))


class DeviceKind(Protocol):
    """A module for the devices of one kind.

    Every worker imports such a module as a part of its cold start. So the module imports torch, or
    anything else that is large, only in ``opened``.
    """

    @property
    def __name__(self) -> str:
        """Return the module's name."""

    def serves(self, type_: str, /) -> bool:
        """Return whether torch devices of this type are of this kind."""

    def in_use(self) -> Sequence[str]:
        """Return the names of the devices that this process has begun to use."""

    def present(self) -> bool:
        """Return whether the machine has such a device, as far as imported modules show."""

    def facts(self) -> Mapping[str, str]:
        """Return facts on which the device's speed depends. Empty without such a device."""

    def opened(self, name: str, /) -> BurstDevice:
        """Return the device ``name``. Raises an error if it can't be used or waited for."""


_KIND = ("serves", "in_use", "present", "facts", "opened")
"""Attributes that a kind's module must have."""


def registered() -> tuple[str, ...]:
    """Return the names of modules that other distributions add. UsageError if one is broken."""
    return tuple(module.__name__ for _, module in added_plugins(GROUP, *_KIND))


def kinds(others: Sequence[str]) -> tuple[DeviceKind, ...]:
    """Return the kinds of device: the modules named in ``others``, then perfci's own.

    Discovery finds ``others`` by ``registered`` and passes them to each worker, because looking for
    entry points takes up to 0.1 s.
    """
    modules = [importlib.import_module(name) for name in others]
    modules += [module for _, module in built_in_modules(sys.modules[__name__])]
    return tuple(cast("DeviceKind", module) for module in modules)


def named(kinds: Sequence[DeviceKind], name: str) -> BurstDevice | None:
    """Return the device ``name``, or None for the host. Unusable if it can't be waited for."""
    type_ = name.partition(":")[0]
    if type_ in _HOST:
        return None
    kind = next((candidate for candidate in kinds if candidate.serves(type_)), None)
    if kind is None:
        raise _refused(name, f"no kind of device serves `{type_}`")
    try:
        return kind.opened(name)
    except Exception as error:  # any driver's or plug-in's code: reported with its reason
        first_line = str(error).strip().split("\n", 1)[0]
        raise _refused(name, first_line or type(error).__name__) from error


def in_use(kinds: Sequence[DeviceKind]) -> tuple[str, ...]:
    """Return the names of all devices that this process has begun to use."""
    return tuple(name for kind in kinds for name in kind.in_use())


def used(
    kinds: Sequence[DeviceKind], output: Any, device: BurstDevice | None = None
) -> BurstDevice | None:
    """Return all devices that a call ran on, or None for the host alone.

    These are ``device``, which the work names, those of its outputs, and those that the process
    uses. A step may return nothing, or only what its last device holds. Otherwise only its launch
    would be timed.
    """
    by_name = {device.name: device} if device else {}
    labels = (*sorted(devices_of(output)), *in_use(kinds))
    for label in labels:
        if label not in by_name and (opened := named(kinds, label)):
            by_name[opened.name] = opened
    if len(by_name) > 1:
        return DeviceGroup(list(by_name.values()))
    return next(iter(by_name.values()), None)


def devices_of(output: Any) -> frozenset[str]:
    """Return the devices of the tensors in ``output``. Empty if torch isn't loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return frozenset()
    from torch.utils import _pytree

    leaves = _pytree.tree_leaves(output)
    return frozenset(str(leaf.device) for leaf in leaves if isinstance(leaf, torch.Tensor))


def check_output(name: str, output: Any) -> None:
    """Raise Unusable if an output isn't on the device that the work names."""
    type_ = name.partition(":")[0]
    elsewhere = {label for label in devices_of(output) if label.partition(":")[0] != type_}
    if elsewhere:
        raise Unusable(
            "wrong_device",
            f"the work runs on {name}, but its output is on {', '.join(sorted(elsewhere))}: it "
            "could not be synchronised; pass device= or move the output inside the benchmark",
        )


def _refused(name: str, why: str) -> Unusable:
    return Unusable(
        "device_not_synchronised",
        f"perfci can't wait for the device {name}, so its work can't be timed: {why}\n"
        "Run the benchmark on the host or on a CUDA device, or install a device for perfci "
        f"(entry point group {GROUP}) that can.",
    )
