"""What a machine can be parted into: its physical cores, and its GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")


def physical_cores(available: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the cores that share a physical one together, neighbours on a socket side by side."""
    groups: dict[tuple[int, int], list[int]] = {}
    for core in available:
        groups.setdefault(_place(core), []).append(core)
    return tuple(tuple(groups[place]) for place in sorted(groups))


def _place(core: int) -> tuple[int, int]:
    """Return socket and physical core; a core whose place isn't shown stands for itself."""
    topology = _CPUS / f"cpu{core}" / "topology"
    try:
        package, number = (
            int((topology / name).read_text(encoding="ascii"))
            for name in ("physical_package_id", "core_id")
        )
    except (OSError, ValueError):  # a sandbox may hide it
        return (0, core)
    return (package, number)


def visible_gpus(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return how CUDA_VISIBLE_DEVICES names each GPU that commands may use."""
    given = environment.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return tuple(name.strip() for name in given.split(",") if name.strip())
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:  # no driver
        return ()
    try:
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return tuple(str(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles)
    finally:
        pynvml.nvmlShutdown()
