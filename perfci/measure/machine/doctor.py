"""Examines a machine before it measures. Each check is a function that returns one finding."""

from __future__ import annotations

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

from perfci.config.keys import MeasureSettings, QuietTable
from perfci.config.loading import Config
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
from perfci.measure.machine.isolation import child_environment, git_secrets, overridden, tokens_in
from perfci.units import counted

_LEAST_GIB = 2.0
"""Least free disk and memory."""
_PROBE_S = 120.0
"""Longest time of a probe: importing torch from a cold disk takes long."""
_PYTHON_PROBE = """
import sys, importlib.util
print(*sys.version_info[:2], importlib.util.find_spec("torch") is not None, sys.executable)
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


class NoAnswer(Exception):
    """A program can't be run, fails, or doesn't end; the message says which."""


def _answer(*command: str, env: Mapping[str, str] | None = None) -> str:
    """Return what a command prints, or raise NoAnswer with the last line of its complaint."""
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=_PROBE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoAnswer(str(error)) from error
    if done.returncode:
        raise NoAnswer((done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
    return done.stdout


def examine(
    python: str,
    cache: Path,
    environment: Mapping[str, str],
    root: Path,
    config: Config | UsageError,
) -> tuple[HardwareFinding, ...]:
    """Return every check's finding, in the order of the checks.

    ``config`` is the configuration of the repository at ``root``, or the error in it.
    """
    import psutil
    import pynvml

    findings: list[HardwareFinding] = []
    if isinstance(config, UsageError):
        findings.append(_impossible("configuration", config.message, config.advice))
        config = Config()
    launcher, available = config.launcher, available_cores()
    return (
        *findings,
        _python(python, environment, launcher),
        _git(),
        _compiler(environment),
        _disk(cache),
        _enough("memory", psutil.virtual_memory().available, "", "Two workers live at once."),
        cores(available, config.settings, config.quiet, cores_near_first(environment)),
        quota(cpu_quota(), len(available)),
        load(os.getloadavg()[0], len(available)),
        frequency_governor(),
        turbo(),
        gpu(pynvml, lambda: card_of(python, environment, launcher)),
        _secrets(environment),
        _git_secrets(environment, root),
    )


def _worker_python(
    probe: str, python: str, environment: Mapping[str, str], launcher: Sequence[str]
) -> str:
    """Return what ``probe`` prints in the Python and environment of workers."""
    env = child_environment(environment, QuietTable(), 1, (), {})
    return _answer(*launcher, python, "-P", "-c", probe, env=env)


def _python(
    python: str, environment: Mapping[str, str], launcher: Sequence[str] = ()
) -> HardwareFinding:
    try:
        answer = _worker_python(_PYTHON_PROBE, python, environment, launcher)
        major, minor, torch, executable = answer.strip().split(" ", 3)
        version = int(major), int(minor)
    except (NoAnswer, ValueError) as error:
        return _impossible("Python", f"{python}: {error}", "Name one with --python.")
    # behind a launcher, the same name may mean another Python
    where = f"{executable}, behind the launcher" if launcher else python
    text = f"{major}.{minor} at {where}"
    if version < (3, 11):
        return _impossible("Python", text, "Workers need Python 3.11 or newer.")
    if torch != "True":
        advice = "If benchmarks need torch, name the Python that has it with --python."
        return _worse("Python", f"{text}, without torch", advice)
    return _ok("Python", f"{text}, with torch")


def _git() -> HardwareFinding:
    advice = "Install git 2.31 or newer."
    try:
        text = _answer("git", "--version")
    except NoAnswer as error:
        return _impossible("git", str(error), advice)
    match = re.search(r"(\d+)\.(\d+)\S*", text)
    if match is None or (int(match[1]), int(match[2])) < (2, 31):
        return _impossible("git", match[0] if match else text, advice)
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


def _enough(subject: str, free: float, where: str, advice: str) -> HardwareFinding:
    """Check that at least 2 GiB are free."""
    gib = free / 2**30
    if gib < _LEAST_GIB:
        return _worse(subject, f"{gib:.1f} GiB free{where}", advice)
    return _ok(subject, f"{gib:.0f} GiB free{where}")


def _disk(cache: Path) -> HardwareFinding:
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    advice = "Set PERFCI_CACHE_DIR to a folder with 2 GiB for worktrees and compile caches."
    try:
        with tempfile.NamedTemporaryFile(dir=existing):
            pass
    except OSError as error:
        text = f"{existing} can't be written: {error.strerror}"
        return _impossible("cache folder", text, advice)
    return _enough("cache folder", shutil.disk_usage(existing).free, f" at {existing}", advice)


def _readable(
    subject: str, text: str, advice: str, environment: Mapping[str, str]
) -> HardwareFinding:
    """Return the finding on secrets that benchmarks can read."""
    if overridden(environment):
        return _worse(subject, f"{text}; benchmarks can read that, as is allowed", advice)
    return _impossible(subject, f"{text}; benchmarks can read that", f"{advice} Or --allow-token.")


def _secrets(environment: Mapping[str, str]) -> HardwareFinding:
    present = tokens_in(environment)
    if not present:
        return _ok("secrets", "no token of GitHub's in the environment")
    return _readable(
        "secrets", f"{', '.join(present)} set", "Measure in a job without it.", environment
    )


def _git_secrets(environment: Mapping[str, str], root: Path) -> HardwareFinding:
    subject = "git's credentials"
    try:
        kept = git_secrets(root)
    except OutsideError as error:
        return _impossible(subject, error.message, error.advice)
    if kept.settings:
        advice = "Take it away; of actions/checkout: `persist-credentials: false`."
        return _readable(subject, ", ".join(kept.settings), advice, environment)
    if kept.helpers:
        return _worse(
            subject,
            f"the credential helper {', '.join(kept.helpers)} gives them to whatever asks",
            "Where the code of others is measured, use a user without it.",
        )
    return _ok(subject, "none in its configuration")


def cores(
    available: Sequence[int],
    settings: MeasureSettings,
    quiet: QuietTable,
    near: frozenset[int] = frozenset(),
) -> HardwareFinding:
    """Check whether workers get cores of their own, as configured, and ``near`` the GPU."""
    available = sorted(available, key=lambda core: (core in near, core))
    try:
        plan = plan_cores(available, cores=settings.cores, threads=settings.threads, pin=quiet.pin)
    except UsageError as error:
        return _impossible("cores", error.message, error.advice)
    if not quiet.pin:
        return _worse("cores", "workers are not pinned", "Take `pin = false` out of `quiet`.")
    numbers = [str(core) for core in sorted(plan.workers)]
    try:
        answer = _answer(sys.executable, "-I", "-S", "-c", _PIN_PROBE, *numbers)
    except NoAnswer as error:
        return _impossible(
            "cores",
            f"a process can't be pinned to cores {', '.join(numbers)}: {error}",
            "Let the container or sandbox allow sched_setaffinity, or set `pin = false` in "
            "[tool.perfci.quiet].",
        )
    if answer.split() != numbers:
        text = f"a process pinned to cores {', '.join(numbers)} is on {answer.strip()}"
        return _worse("cores", text, "A daemon that places processes, or a sandbox, undoes it.")
    if len(available) < 2 or (near and set(plan.workers) - near):
        text = f"{len(available)}; too few for workers to have their own, near the GPU"
        return _worse("cores", text, "Let perfci use two cores or more, of the GPU's NUMA node.")
    return _ok("cores", f"{len(available)}; workers are pinned to their own")


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
    name = _content(cpus / "cpu0" / "cpufreq" / "scaling_governor")
    if name in {"", "performance"}:
        return _ok("frequency governor", name or "none visible (usual in a virtual machine)")
    advice = "Clock speeds follow the load: sudo cpupower frequency-set -g performance"
    return _worse("frequency governor", name, advice)


def turbo(cpus: Path = CPUS) -> HardwareFinding:
    """Check whether clock speeds follow temperature and neighbours."""
    for path, on in ((cpus / "intel_pstate/no_turbo", "0"), (cpus / "cpufreq/boost", "1")):
        if _content(path) == on:
            advice = f"Speed depends on temperature and neighbours; switch it off in {path}."
            return _worse("turbo", "on", advice)
    return _ok("turbo", "off, or not visible")


def _content(path: Path) -> str:
    return path.read_text(encoding="ascii").strip() if path.exists() else ""


def gpu(nvml: Any, ask_torch: Callable[[], tuple[str, str]]) -> HardwareFinding:
    """Examine the card that ``ask_torch`` names; ``nvml`` is the module pynvml."""
    try:
        nvml.nvmlInit()
    except (nvml.NVMLError_LibraryNotFound, nvml.NVMLError_DriverNotLoaded):
        return _ok("GPU", "no NVIDIA driver here; GPU metrics are not measured")
    except nvml.NVMLError as error:
        return _worse("GPU", f"NVML can't be read: {error}", "Run `nvidia-smi`; it should work.")
    try:
        name, uuid = ask_torch()
    except NoAnswer as error:
        return _worse(
            "GPU",
            f"a driver is here, but no card for torch: {error}",
            "GPU metrics are not measured. For them install a CUDA build of torch there, and look "
            "at CUDA_VISIBLE_DEVICES.",
        )
    try:
        watch = open_gpu_watch(nvml, uuid)
    except UnwatchableCard as reason:
        return _worse(
            "GPU",
            f"{name} can't be watched: {reason}",
            "Its slowdowns and other processes on it go unseen.",
        )
    return _seen(watch, name)


def card_of(
    python: str, environment: Mapping[str, str], launcher: Sequence[str] = ()
) -> tuple[str, str]:
    """Return the name and the UUID of the card that ``python``'s torch uses. Raises NoAnswer."""
    text = _worker_python(_CARD_PROBE, python, environment, launcher)
    if not text.strip():
        raise NoAnswer(f"torch.cuda.is_available() is False in {python}")
    name, uuid = text.split("\n")[-3:-1]  # the last two lines: torch may print before
    return name, uuid


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
