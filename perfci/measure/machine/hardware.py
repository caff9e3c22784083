"""The hardware: its facts, its physical cores and GPUs, and what ``doctor`` checks of it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from perfci.errors import UsageError
from perfci.measure.machine.gpu_watch import GpuWatch, UnwatchableCard, open_gpu_watch
from perfci.measure.machine.quiet import child_environment, plan_cores
from perfci.model.worker import MeasureSettings, Quiet
from perfci.units import counted

CPUS = Path("/sys/devices/system/cpu")
# Cores: may workers be pinned, is something else running, what sets the clocks.
_PIN_PROBE = """
import os, sys
os.sched_setaffinity(0, map(int, sys.argv[1:]))
print(*sorted(os.sched_getaffinity(0)))
"""
# The card that torch would measure on: who else uses it, and is it slowed down.
_PROBE_S = 120.0
_PROBE = """
import torch
if torch.cuda.is_available():
    print(torch.cuda.get_device_name(0))
    print(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
"""
_CPUS = Path("/sys/devices/system/cpu")


def host_facts() -> dict[str, str]:
    """Return the CPU's model, the architecture and the system; the same text on every call."""
    return {
        "system": platform.system().lower(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cpu_count": str(os.cpu_count() or 0),
    }


def governor(cpus: Path = CPUS) -> str | None:
    """Return the frequency governor of the first core, or None where there is none to read."""
    path = cpus / "cpu0" / "cpufreq" / "scaling_governor"
    return path.read_text(encoding="ascii").strip() if path.exists() else None


def _cpu_model() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown"


Level = Literal["ok", "worse", "impossible"]


@dataclass(frozen=True, slots=True)
class HardwareFinding:
    """The finding of one check, how grave it is, and what to do."""

    level: Level
    subject: str
    observation: str
    advice: str = ""


def cores(available: Sequence[int], settings: MeasureSettings, quiet: Quiet) -> HardwareFinding:
    """Say whether workers get cores of their own, as the configuration asks for."""
    try:
        plan = plan_cores(available, cores=settings.cores, threads=settings.threads, pin=quiet.pin)
    except UsageError as error:
        return HardwareFinding("impossible", "cores", error.message, error.advice)
    if not quiet.pin:
        return HardwareFinding(
            "worse",
            "cores",
            f"{len(available)}; workers are not pinned: `pin` is false in the configuration",
            "They move between cores, and share them with the parent. Take it out of "
            "[tool.perfci.quiet].",
        )
    if unpinned := _pinned(plan.workers):
        return unpinned
    if len(available) < 2:
        return HardwareFinding(
            "worse",
            "cores",
            "only one may be used",
            "The parent shares it with the workers; give the runner two, or more.",
        )
    return HardwareFinding("ok", "cores", f"{len(available)}; workers are pinned to their own")


def _pinned(wanted: Sequence[int]) -> HardwareFinding | None:
    """Pin a child as workers are; return what is wrong with that, if anything is."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _PIN_PROBE, *map(str, wanted)],
        capture_output=True,
        text=True,
        check=False,
    )
    which = f"cores {', '.join(map(str, wanted))}"
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return HardwareFinding(
            "impossible",
            "cores",
            f"a process can't be pinned to {which}: {last}",
            "Let the container or sandbox allow sched_setaffinity, or set `pin = false` in "
            "[tool.perfci.quiet].",
        )
    if done.stdout.split() != [str(core) for core in sorted(wanted)]:
        return HardwareFinding(
            "worse",
            "cores",
            f"a process pinned to {which} is on {done.stdout.strip()}",
            "Something takes pinning back (a daemon that places processes, or a sandbox): workers "
            "move between cores.",
        )
    return None


def load(average: float, count: int) -> HardwareFinding:
    """Say whether something else keeps the ``count`` cores busy, by the load ``average``."""
    text = f"{average:.1f} over the last minute"
    if average > 0.5 * count:
        return HardwareFinding(
            "worse", "load", text, "Something else is running; wait for it, or stop it."
        )
    return HardwareFinding("ok", "load", text)


def frequency_governor(cpus: Path = CPUS) -> HardwareFinding:
    """Say whether clock speeds follow the load."""
    name = governor(cpus)
    if name is None:
        return HardwareFinding(
            "ok", "frequency governor", "none visible (usual in a virtual machine)"
        )
    if name != "performance":
        return HardwareFinding(
            "worse",
            "frequency governor",
            name,
            "Clock speeds follow the load: sudo cpupower frequency-set -g performance",
        )
    return HardwareFinding("ok", "frequency governor", name)


def turbo(cpus: Path = CPUS) -> HardwareFinding:
    """Say whether clock speeds follow temperature and neighbours."""
    for path, on in (
        (cpus / "intel_pstate" / "no_turbo", "0"),
        (cpus / "cpufreq" / "boost", "1"),
    ):
        if path.exists() and path.read_text(encoding="ascii").strip() == on:
            return HardwareFinding(
                "worse",
                "turbo",
                "on",
                f"Speed depends on temperature and neighbours; switch it off in {path}.",
            )
    return HardwareFinding("ok", "turbo", "off, or not visible")


@dataclass(frozen=True, slots=True)
class Card:
    """The card that torch uses first, as torch knows it."""

    name: str
    uuid: str


def gpu(nvml: Any, ask_torch: Callable[[], Card | HardwareFinding]) -> HardwareFinding:
    """Examine the card that ``ask_torch`` names; ``nvml`` is the module pynvml."""
    try:
        nvml.nvmlInit()
    except (nvml.NVMLError_LibraryNotFound, nvml.NVMLError_DriverNotLoaded):
        return HardwareFinding("ok", "GPU", "no NVIDIA driver here; GPU metrics are not measured")
    except nvml.NVMLError as error:
        return HardwareFinding(
            "worse", "GPU", f"NVML can't be read: {error}", "Run `nvidia-smi`; it should work."
        )
    card = ask_torch()
    if isinstance(card, HardwareFinding):
        return card
    try:
        watch = open_gpu_watch(nvml, card.uuid)
    except UnwatchableCard as reason:
        return HardwareFinding(
            "worse",
            "GPU",
            f"{card.name} can't be watched: {reason}",
            "Its slowdowns and other processes on it go unseen, and its energy isn't measured.",
        )
    return _seen(watch, card.name)


def card_of(
    python: str, environment: Mapping[str, str], launcher: Sequence[str] = ()
) -> Card | HardwareFinding:
    """Return the card that ``python``'s torch uses, or a finding where it has none."""
    try:
        done = subprocess.run(
            [*launcher, python, "-P", "-c", _PROBE],
            env=child_environment(environment, Quiet(), 1, (), {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=_PROBE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return _no_card(python, str(error))
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        return _no_card(python, last)
    if not done.stdout.strip():
        return _no_card(python, "torch.cuda.is_available() is False")
    name, uuid = done.stdout.split("\n")[-3:-1]  # the last two lines: torch may print before
    return Card(name, uuid)


def _no_card(python: str, why: str) -> HardwareFinding:
    return HardwareFinding(
        "worse",
        "GPU",
        f"a driver is here, but no card for the torch of {python}: {why}",
        "GPU metrics are not measured. For them install a CUDA build of torch there, and look at "
        "CUDA_VISIBLE_DEVICES.",
    )


def _seen(watch: GpuWatch, name: str) -> HardwareFinding:
    state = watch.read()
    if state.compute_pids:
        return HardwareFinding(
            "worse",
            "GPU",
            f"{name} is used by {counted(len(state.compute_pids), 'other process')}",
            "Bursts beside them are excluded; stop them (nvidia-smi shows which).",
        )
    if state.slowdown:
        return HardwareFinding(
            "worse",
            "GPU",
            f"{name} is slowed down: {state.slowdown}",
            "Cool it, or raise its power limit.",
        )
    temperature, clock = watch.temperature(), watch.sm_clock()
    readings = [
        *([] if temperature is None else [f"{temperature} °C"]),
        *([] if clock is None else [f"SM clock {clock} MHz"]),
        *(f"{what} unknown to NVML ({why})" for what, why in watch.unknown.items()),
    ]
    return HardwareFinding("ok", "GPU", ", ".join([name, *readings]))


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
