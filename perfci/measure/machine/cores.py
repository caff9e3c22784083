"""The cores and GPUs of a machine: which of them a session's workers get.

Two sessions that pin their workers to one core take turns on it, and disturb each other's times.
So a session locks its workers' cores, and prefers cores that no other session has locked. Of these
it prefers cores that are near the GPU: from another NUMA node, launches and copies take longer.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from perfci.errors import UsageError
from perfci.measure.checkout.disk import take_if_free
from perfci.units import counted
from perfci.worker.devices.cuda import DRIVER

SHARED = (
    "Another perfci session is measuring on this machine, on the same cores: both are disturbed."
)
QUOTA = (
    "A cgroup allows {:.3g} s of processor time per second, and there are {}. So perfci uses no "
    "more whole cores than that, unless `cores` asks for them. When the time is used up, the "
    "kernel stops workers, and their bursts don't count. Give the container whole cores instead: "
    "docker's `--cpuset-cpus`, not `--cpus`."
)
CPUS = Path("/sys/devices/system/cpu")
_QUOTAS = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
"""A cgroup's files with a quota and its period: of version 2, and two of version 1."""
_THROTTLED = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
"""Units of the throttled time in s, by its name in ``cpu.stat`` of versions 2 and 1."""
_WORD = 64
"""Cores in one word of NVML's bit mask."""


@dataclass(frozen=True, slots=True)
class CorePlan:
    """The cores of the workers and of the parent, both empty if nothing is pinned.

    ``near`` are the cores near the GPU, if NVML tells them from others.
    """

    workers: tuple[int, ...]
    parent: tuple[int, ...]
    threads: int
    near: frozenset[int] = frozenset()


def available_cores() -> tuple[int, ...]:
    """Return the cores this process may run on."""
    return tuple(sorted(os.sched_getaffinity(0)))


def cpu_quota(
    cgroups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> float | None:
    """Return the processor time per second that cgroups allow this process, None if all of it.

    ``docker run --cpus``, a limit of Kubernetes and systemd's ``CPUQuota`` set one. Inside of a
    container, ``own`` may show a path of the host, and the container's cgroup is the mounted root.
    """
    return min(_quotas(cgroups, own).values(), default=None)


def throttled_s(
    cgroups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> float:
    """Return the time for which cgroups' quotas have stopped this process's threads so far."""
    files = (folder / "cpu.stat" for folder in _quotas(cgroups, own))
    counters = (line.split() for file in files for line in file.read_text().splitlines())
    return sum(int(count) * _THROTTLED[name] for name, count in counters if name in _THROTTLED)


@cache
def _quotas(cgroups: Path, own: Path) -> Mapping[Path, float]:
    """Return each cgroup of this process that has a quota, with the quota."""
    quotas = {}
    for line in own.read_text(encoding="utf-8").splitlines() if own.exists() else ():
        _, controllers, path = line.split(":", 2)
        mounted = cgroups / controllers  # the controllers of version 2 are an empty word
        for folder in (below := mounted / path.lstrip("/"), *below.parents):
            files = [folder / name for name in _QUOTAS if folder.is_relative_to(mounted)]
            words = [word for file in files if file.exists() for word in file.read_text().split()]
            if len(words) == 2 and words[0] not in {"max", "-1"}:
                quotas[folder] = int(words[0]) / int(words[1])
    return quotas


def plan_cores(
    available: Sequence[int], *, cores: int, threads: int, pin: bool, quota: float | None = None
) -> CorePlan:
    """Return the plan: workers on the last cores, the parent on the rest, if any.

    ``cores`` 0 means up to four, with one left for the parent. ``threads`` 0 means one per core.
    Only as many cores are used as the ``quota`` has whole ones: on more, processes that import
    while workers measure would use the quota up. ``cores`` is kept, even if that is more.
    Raises UsageError for more cores than there are: fewer would be another environment.
    """
    if cores > len(available):
        raise UsageError(
            "too-many-cores",
            f"`cores` is {cores}, and perfci may use {len(available)} here",
            "Set `cores` to that or less, or to 0 to let perfci choose.",
        )
    usable = len(available) if quota is None else min(len(available), max(1, int(quota)))
    wanted = cores or min(4, max(1, usable - 1))
    chosen = tuple(available[-wanted:])
    rest = tuple(available[-max(usable, wanted) : -wanted])
    count = threads or len(chosen)
    return CorePlan(chosen, rest, count) if pin else CorePlan((), (), count)


@contextmanager
def own_cores(
    available: Sequence[int],
    plan: Callable[..., CorePlan],
    near: frozenset[int] = frozenset(),
) -> Iterator[tuple[CorePlan, tuple[str, ...]]]:
    """Yield ``plan`` of the available cores, and notes on what takes from the workers' time.

    ``plan`` gets the cores and the quota, and takes workers' cores from the end. So cores that no
    other session holds come last, and of these the ones that are ``near`` the GPU.
    """
    folder = _folder()
    free = {core for core in available if folder and _is_free(folder / f"core-{core}.lock")}
    ordered = sorted(available, key=lambda core: (core in free, core in near, core))
    chosen = plan(ordered, quota=(quota := cpu_quota()))
    unshared = tuple(core for core in chosen.parent if core in free)
    chosen = replace(chosen, parent=unshared or chosen.parent, near=near)
    notes = quota_notes(len(available), quota)
    if folder is None:
        yield chosen, notes
        return
    with ExitStack() as held:
        shared = False
        for core in chosen.workers:
            lock = take_if_free(folder / f"core-{core}.lock")
            if lock:
                held.enter_context(lock)
            shared = shared or lock is None
        yield chosen, (SHARED, *notes) if shared else notes


def quota_notes(count: int, quota: float | None) -> tuple[str, ...]:
    """Return the note on a quota of less than the time of ``count`` cores, if it is one."""
    if quota is None or quota >= count:
        return ()
    return (QUOTA.format(quota, counted(count, "core")),)


def _is_free(path: Path) -> bool:
    lock = take_if_free(path)
    if lock:
        lock.release()
    return lock is not None


def _folder() -> Path | None:
    """Return the folder of the cores' locks, or None if it can't be made or trusted.

    It must belong to this user, must not be a link, and must have no folders in it.
    """
    folder = Path(tempfile.gettempdir()) / f"perfci-cores-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:  # no room, or read-only: sessions then know nothing of each other
        return None
    mine = status.st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink()
    return folder if mine and not any(path.is_dir() for path in folder.iterdir()) else None


def cores_near_first(environment: Mapping[str, str]) -> frozenset[int]:
    """Return the cores on the NUMA node of the first GPU that ``environment`` shows, ``cuda:0``.

    Empty if NVML doesn't know them, or if they are all cores of the machine. NVML counts GPUs by
    their place on the bus. CUDA does so too among GPUs of one kind.
    """
    first = environment.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0].strip()
    if not first or not DRIVER.exists():
        return frozenset()
    import pynvml

    count = os.sysconf("SC_NPROCESSORS_CONF")
    try:
        pynvml.nvmlInit()
        handle = (
            pynvml.nvmlDeviceGetHandleByIndex(int(first))
            if first.isdigit()
            else pynvml.nvmlDeviceGetHandleByUUID(first)
        )
        words = pynvml.nvmlDeviceGetCpuAffinity(handle, math.ceil(count / _WORD))
    except pynvml.NVMLError:  # no card of that name, or one that has fallen off the bus
        return frozenset()
    cores = frozenset(core for core in range(count) if words[core // _WORD] >> core % _WORD & 1)
    return cores if 0 < len(cores) < count else frozenset()
