"""Examines a machine before it measures. Each check is a function that returns one finding."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from perfci.config.loading import Config, load_config
from perfci.errors import OutsideError, UsageError
from perfci.measure.machine.cores import (
    CPUS,
    available_cores,
    cores_near_first,
    cpu_quota,
    plan_cores,
    quota_notes,
)
from perfci.measure.machine.gpu_watch import GpuWatch, UnwatchableCard, open_gpu_watch
from perfci.measure.machine.isolation import (
    OVERRIDE,
    child_environment,
    git_secrets,
    overridden,
    tokens_in,
)
from perfci.model.measuring import MeasureSettings, Quiet
from perfci.units import counted

_LEAST_DISK_GIB = 2.0
_LEAST_MEMORY_GIB = 2.0
_PROBE_S = 60.0
"""Longest time of a probe: importing torch from a cold disk takes long."""
_LEAST_GIT = (2, 31)
_GIT_ADVICE = "Install git 2.31 or newer."
_TORCH_PROBE = """
import importlib.metadata, json, sys
answer = {"python": sys.version.split()[0], "version_info": list(sys.version_info[:2])}
answer["executable"] = sys.executable
try:
    answer["torch"] = importlib.metadata.version("torch")
except importlib.metadata.PackageNotFoundError:
    answer["torch"] = None
print(json.dumps(answer))
"""
_PIN_PROBE = """
import os, sys
os.sched_setaffinity(0, map(int, sys.argv[1:]))
print(*sorted(os.sched_getaffinity(0)))
"""
_CARD_PROBE = """
import torch
if torch.cuda.is_available():
    print(torch.cuda.get_device_name(0))
    print(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
"""
Level = Literal["ok", "worse", "impossible"]
"""``worse``: perfci measures, but sees less or has more noise. ``impossible``: it can't measure."""


@dataclass(frozen=True, slots=True)
class HardwareFinding:
    """The finding of one check, how grave it is, and what to do."""

    level: Level
    subject: str
    observation: str
    advice: str = ""


_ok = partial(HardwareFinding, "ok")
_worse = partial(HardwareFinding, "worse")
_impossible = partial(HardwareFinding, "impossible")


def examine(
    python: str,
    cache: Path,
    environment: Mapping[str, str],
    root: Path,
    explicit: Path | None = None,
    launcher: Sequence[str] = (),
) -> tuple[HardwareFinding, ...]:
    """Return every check's finding, in the order of the checks.

    The configuration of the repository at ``root``, or the file ``explicit``, says how workers are
    kept quiet.
    """
    import pynvml

    config, misread = _configuration(root, explicit)
    return (
        *misread,
        _python(python, environment, launcher),
        _git(),
        _compiler(environment),
        _disk(cache),
        _memory(),
        cores(available_cores(), config.settings, config.quiet, cores_near_first(environment)),
        quota(cpu_quota(), len(available_cores())),
        load(os.getloadavg()[0], len(available_cores())),
        frequency_governor(),
        turbo(),
        gpu(pynvml, lambda: card_of(python, environment, launcher)),
        _secrets(environment),
        _git_secrets(environment, root),
    )


def _configuration(root: Path, explicit: Path | None) -> tuple[Config, tuple[HardwareFinding, ...]]:
    """Return the configuration, or the defaults and a finding where it can't be read."""
    try:
        return load_config(root, explicit), ()
    except UsageError as error:
        finding = _impossible("configuration", error.message, error.advice)
        return Config(), (finding,)


def _python(
    python: str, environment: Mapping[str, str], launcher: Sequence[str] = ()
) -> HardwareFinding:
    try:
        done = _probed(_TORCH_PROBE, python, environment, launcher)
    except subprocess.TimeoutExpired:
        return _impossible(
            "Python", f"{python}: no answer in {_PROBE_S:g} s", "Name one with --python."
        )
    if not done.returncode and not done.stdout.startswith("{"):
        return _impossible("Python", f"{python} is no Python", "Name one with --python.")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return _impossible("Python", f"{python}: {last}", "Name one with --python.")
    answer = json.loads(done.stdout)
    if launcher:  # behind a launcher, the same name may mean another Python
        python = f"{answer['executable']}, behind the launcher"
    if tuple(answer["version_info"]) < (3, 11):
        return _impossible(
            "Python", f"{answer['python']} at {python}", "Workers need Python 3.11 or newer."
        )
    if answer["torch"] is None:
        return _worse(
            "Python",
            f"{answer['python']} at {python}, without torch",
            "Install torch there, or name the Python that has it with --python; benchmarks "
            "without torch can be measured as they are.",
        )
    return _ok("Python", f"{answer['python']} with torch {answer['torch']} at {python}")


def _probed(
    probe: str,
    python: str,
    environment: Mapping[str, str],
    launcher: Sequence[str],
    within_s: float = _PROBE_S,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*launcher, python, "-P", "-c", probe],
        env=child_environment(environment, Quiet(), 1, (), {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=within_s,
    )


def _git() -> HardwareFinding:
    path = shutil.which("git")
    if path is None:
        return _impossible("git", "not found", _GIT_ADVICE)
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=False, timeout=_PROBE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return _impossible("git", f"{path} can't be run: {error}", _GIT_ADVICE)
    match = re.search(r"(\d+)\.(\d+)\S*", done.stdout)
    if done.returncode or not match:
        last = (f"{done.stdout}\n{done.stderr}".strip().splitlines() or ["nothing"])[-1]
        return _impossible("git", f"{path} --version says: {last}", _GIT_ADVICE)
    if (int(match[1]), int(match[2])) < _LEAST_GIT:
        return _impossible("git", f"{match[0]} at {path}", _GIT_ADVICE)
    return _ok("git", match[0])


def _compiler(environment: Mapping[str, str]) -> HardwareFinding:
    names = [environment["CXX"]] if environment.get("CXX") else ["g++", "clang++"]
    for name in names:
        if path := shutil.which(name):
            return _ok("C++ compiler", path)
    return _worse(
        "C++ compiler",
        f"none of {', '.join(names)} found",
        "torch.compile on a CPU needs one: install g++ (Debian: apt install g++), or set CXX.",
    )


def _disk(cache: Path, usage: Callable[[Path], Any] = shutil.disk_usage) -> HardwareFinding:
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free = usage(existing).free / 2**30
    try:
        with tempfile.NamedTemporaryFile(dir=existing):
            pass
    except OSError as error:
        return _impossible(
            "cache folder",
            f"{existing} can't be written: {error.strerror}",
            "Set PERFCI_CACHE_DIR to a folder that can.",
        )
    if free < _LEAST_DISK_GIB:
        return _worse(
            "cache folder",
            f"{free:.1f} GiB free at {existing}",
            f"Worktrees and compile caches may need {_LEAST_DISK_GIB:.0f} GiB: make room, or set "
            "PERFCI_CACHE_DIR.",
        )
    return _ok("cache folder", f"{free:.0f} GiB free at {existing}")


def _memory() -> HardwareFinding:
    import psutil

    free = psutil.virtual_memory().available / 2**30
    if free < _LEAST_MEMORY_GIB:
        return _worse(
            "memory",
            f"{free:.1f} GiB available",
            "Two workers live at once, each with its own torch (about 0.3 GiB) and your model.",
        )
    return _ok("memory", f"{free:.0f} GiB available")


def _secrets(environment: Mapping[str, str]) -> HardwareFinding:
    present = tokens_in(environment)
    if not present:
        return _ok("secrets", "no token of GitHub's in the environment")
    text = f"{', '.join(present)} set; benchmarks can read that"
    if overridden(environment):
        return _worse("secrets", f"{text}, as {OVERRIDE}=1 allows", "Take it away.")
    return _impossible("secrets", text, "Measure in a job without it, or with --allow-token.")


def _git_secrets(environment: Mapping[str, str], root: Path) -> HardwareFinding:
    try:
        kept = git_secrets(root)
    except OutsideError as error:  # no git: the finding on git says what to do
        return _worse("git's credentials", error.message)
    if kept.settings:
        text = f"{', '.join(kept.settings)}; benchmarks can read that"
        advice = "Take it away; of actions/checkout: `persist-credentials: false`."
        if overridden(environment):
            return _worse("git's credentials", f"{text}, as {OVERRIDE}=1 allows", advice)
        return _impossible("git's credentials", text, f"{advice} Or --allow-token.")
    if kept.helpers:
        return _worse(
            "git's credentials",
            f"the credential helper {', '.join(kept.helpers)} gives them to whatever asks",
            "Where the code of others is measured, use a user without it.",
        )
    return _ok("git's credentials", "none in its configuration")


def cores(
    available: Sequence[int],
    settings: MeasureSettings,
    quiet: Quiet,
    near: frozenset[int] = frozenset(),
) -> HardwareFinding:
    """Check whether workers get cores of their own, as configured, and ``near`` the GPU."""
    available = sorted(available, key=lambda core: (core in near, core))
    try:
        plan = plan_cores(available, cores=settings.cores, threads=settings.threads, pin=quiet.pin)
    except UsageError as error:
        return _impossible("cores", error.message, error.advice)
    if not quiet.pin:
        return _worse(
            "cores",
            f"{len(available)}; workers are not pinned: `pin` is false in the configuration",
            "They move between cores, and share them with the parent. Take it out of "
            "[tool.perfci.quiet].",
        )
    if unpinned := _pinned(plan.workers):
        return unpinned
    if len(available) < 2:
        return _worse(
            "cores",
            "only one may be used",
            "The parent shares it with the workers; give the runner two, or more.",
        )
    if near and (far := set(plan.workers) - near):
        return _worse(
            "cores",
            f"{len(far)} of the workers' {len(plan.workers)} are on another NUMA node than the GPU",
            "Launches and copies take longer there. Let perfci use more cores of the GPU's node.",
        )
    where = ", near the GPU" if near else ""
    return _ok("cores", f"{len(available)}; workers are pinned to their own{where}")


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
        return _impossible(
            "cores",
            f"a process can't be pinned to {which}: {last}",
            "Let the container or sandbox allow sched_setaffinity, or set `pin = false` in "
            "[tool.perfci.quiet].",
        )
    if done.stdout.split() != [str(core) for core in sorted(wanted)]:
        return _worse(
            "cores",
            f"a process pinned to {which} is on {done.stdout.strip()}",
            "Something takes pinning back (a daemon that places processes, or a sandbox): workers "
            "move between cores.",
        )
    return None


def quota(allowed: float | None, count: int) -> HardwareFinding:
    """Check whether a cgroup, such as a container's, allows less than the ``count`` cores' time."""
    notes = quota_notes(count, allowed)
    return _worse("processor quota", *notes) if notes else _ok("processor quota", "not below cores")


def load(average: float, count: int) -> HardwareFinding:
    """Check whether something else keeps the ``count`` cores busy, by the load ``average``."""
    text = f"{average:.1f} over the last minute"
    if average > 0.5 * count:
        return _worse("load", text, "Something else is running; wait for it, or stop it.")
    return _ok("load", text)


def frequency_governor(cpus: Path = CPUS) -> HardwareFinding:
    """Check whether clock speeds follow the load."""
    path = cpus / "cpu0" / "cpufreq" / "scaling_governor"
    if not path.exists():
        return _ok("frequency governor", "none visible (usual in a virtual machine)")
    name = path.read_text(encoding="ascii").strip()
    if name != "performance":
        return _worse(
            "frequency governor",
            name,
            "Clock speeds follow the load: sudo cpupower frequency-set -g performance",
        )
    return _ok("frequency governor", name)


def turbo(cpus: Path = CPUS) -> HardwareFinding:
    """Check whether clock speeds follow temperature and neighbours."""
    for path, on in (
        (cpus / "intel_pstate" / "no_turbo", "0"),
        (cpus / "cpufreq" / "boost", "1"),
    ):
        if path.exists() and path.read_text(encoding="ascii").strip() == on:
            return _worse(
                "turbo",
                "on",
                f"Speed depends on temperature and neighbours; switch it off in {path}.",
            )
    return _ok("turbo", "off, or not visible")


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
        return _ok("GPU", "no NVIDIA driver here; GPU metrics are not measured")
    except nvml.NVMLError as error:
        return _worse("GPU", f"NVML can't be read: {error}", "Run `nvidia-smi`; it should work.")
    card = ask_torch()
    if isinstance(card, HardwareFinding):
        return card
    try:
        watch = open_gpu_watch(nvml, card.uuid)
    except UnwatchableCard as reason:
        return _worse(
            "GPU",
            f"{card.name} can't be watched: {reason}",
            "Its slowdowns and other processes on it go unseen.",
        )
    return _seen(watch, card.name)


def card_of(
    python: str, environment: Mapping[str, str], launcher: Sequence[str] = ()
) -> Card | HardwareFinding:
    """Return the card that ``python``'s torch uses, or a finding where it has none."""
    try:
        done = _probed(_CARD_PROBE, python, environment, launcher, 2 * _PROBE_S)
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
    return _worse(
        "GPU",
        f"a driver is here, but no card for the torch of {python}: {why}",
        "GPU metrics are not measured. For them install a CUDA build of torch there, and look at "
        "CUDA_VISIBLE_DEVICES.",
    )


def _seen(watch: GpuWatch, name: str) -> HardwareFinding:
    state = watch.read()
    if state.compute_pids:
        return _worse(
            "GPU",
            f"{name} is used by {counted(len(state.compute_pids), 'other process')}",
            "Bursts at the same time are excluded; stop them (nvidia-smi shows which).",
        )
    if state.slowdown:
        return _worse(
            "GPU", f"{name} is slowed down: {state.slowdown}", "Cool it, or raise its power limit."
        )
    temperature, clock = watch.temperature(), watch.sm_clock()
    readings = [
        *([] if temperature is None else [f"{temperature} °C"]),
        *([] if clock is None else [f"SM clock {clock} MHz"]),
        *(f"{what} unknown to NVML ({why})" for what, why in watch.unknown.items()),
    ]
    return _ok("GPU", ", ".join([name, *readings]))
