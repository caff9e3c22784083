"""Looking at a machine before it measures: each check is a function that gives one finding."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perfci.measure.host import governor
from perfci.measure.quiet import available_cores, child_environment
from perfci.record.settings import Quiet
from perfci.units import counted

Level = Literal["ok", "worse", "impossible"]
_LEAST_DISK_GIB = 2.0
_LEAST_MEMORY_GIB = 2.0
_PROBE_S = 60.0
_LEAST_GIT = (2, 31)
_TORCH_PROBE = """
import importlib.metadata, json, sys
answer = {"python": sys.version.split()[0], "version_info": list(sys.version_info[:2])}
try:
    answer["torch"] = importlib.metadata.version("torch")
except importlib.metadata.PackageNotFoundError:
    answer["torch"] = None
print(json.dumps(answer))
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, how grave it is, and what to do."""

    level: Level
    subject: str
    found: str
    advice: str = ""


def examine(python: str, cache: Path, environment: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return every check's finding, in the order of the checks."""
    checks: tuple[Callable[[], Finding], ...] = (
        lambda: _python(python, environment),
        _git,
        lambda: _compiler(environment),
        lambda: _disk(cache),
        _memory,
        _cores,
        _load,
        _governor,
        _turbo,
        _gpu,
        lambda: _secrets(environment),
    )
    return tuple(check() for check in checks)


def _python(python: str, environment: Mapping[str, str]) -> Finding:
    child = child_environment(environment, Quiet(), 1, (), {})
    try:
        done = subprocess.run(
            [python, "-P", "-c", _TORCH_PROBE],
            env=child, capture_output=True, text=True, check=False, timeout=_PROBE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Finding(
            "impossible",
            "Python",
            f"{python}: no answer in {_PROBE_S:g} s",
            "Name one with --python.",
        )
    if not done.returncode and not done.stdout.startswith("{"):
        return Finding("impossible", "Python", f"{python} is no Python", "Name one with --python.")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return Finding("impossible", "Python", f"{python}: {last}", "Name one with --python.")
    answer = json.loads(done.stdout)
    if tuple(answer["version_info"]) < (3, 11):
        return Finding(
            "impossible",
            "Python",
            f"{answer['python']} at {python}",
            "Workers need Python 3.11 or newer.",
        )
    if answer["torch"] is None:
        return Finding(
            "worse",
            "Python",
            f"{answer['python']} at {python}, without torch",
            "Install torch there, or name the Python that has it with --python; benchmarks "
            "without torch can be measured as they are.",
        )
    return Finding("ok", "Python", f"{answer['python']} with torch {answer['torch']} at {python}")


def _git() -> Finding:
    path = shutil.which("git")
    if path is None:
        return Finding("impossible", "git", "not found", "Install git 2.31 or newer.")
    text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    numbers = text.split()[2].split(".")
    version = (int(numbers[0]), int(numbers[1]))
    if version < _LEAST_GIT:
        return Finding("impossible", "git", text.strip(), "Install git 2.31 or newer.")
    return Finding("ok", "git", text.split()[2])


def _compiler(environment: Mapping[str, str]) -> Finding:
    names = [environment["CXX"]] if environment.get("CXX") else ["g++", "clang++"]
    for name in names:
        if path := shutil.which(name):
            return Finding("ok", "C++ compiler", path)
    return Finding(
        "worse",
        "C++ compiler",
        f"none of {', '.join(names)} found",
        "torch.compile on a CPU needs one: install g++ (Debian: apt install g++), or set CXX.",
    )


def _disk(cache: Path) -> Finding:
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free = shutil.disk_usage(existing).free / 2**30
    try:
        with tempfile.NamedTemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Finding(
            "impossible",
            "cache folder",
            f"{existing} can't be written: {error.strerror}",
            "Set PERFCI_CACHE_DIR to a folder that can.",
        )
    if free < _LEAST_DISK_GIB:
        return Finding(
            "worse",
            "cache folder",
            f"{free:.1f} GiB free at {existing}",
            f"Worktrees and compile caches may need {_LEAST_DISK_GIB:.0f} GiB: make room, or set "
            "PERFCI_CACHE_DIR.",
        )
    return Finding("ok", "cache folder", f"{free:.0f} GiB free at {existing}")


def _memory() -> Finding:
    import psutil

    free = psutil.virtual_memory().available / 2**30
    if free < _LEAST_MEMORY_GIB:
        return Finding(
            "worse",
            "memory",
            f"{free:.1f} GiB available",
            "Two workers live at once, each with its own torch (about 0.3 GiB) and your model.",
        )
    return Finding("ok", "memory", f"{free:.0f} GiB available")


def _cores() -> Finding:
    count = len(available_cores())
    if count < 2:
        return Finding(
            "worse",
            "cores",
            "only one may be used",
            "The parent shares it with the workers; give the runner two, or more.",
        )
    return Finding("ok", "cores", f"{count}; workers are pinned to their own")


def _load() -> Finding:
    load = os.getloadavg()[0]
    if load > 0.5 * len(available_cores()):
        return Finding(
            "worse",
            "load",
            f"{load:.1f} over the last minute",
            "Something else is running; wait for it, or stop it.",
        )
    return Finding("ok", "load", f"{load:.1f} over the last minute")


def _governor() -> Finding:
    name = governor()
    if name is None:
        return Finding("ok", "frequency governor", "none visible (usual in a virtual machine)")
    if name != "performance":
        return Finding(
            "worse",
            "frequency governor",
            name,
            "Clock speeds follow the load: sudo cpupower frequency-set -g performance",
        )
    return Finding("ok", "frequency governor", name)


def _turbo() -> Finding:
    for path, on in (
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0"),
        ("/sys/devices/system/cpu/cpufreq/boost", "1"),
    ):
        if Path(path).exists() and Path(path).read_text(encoding="ascii").strip() == on:
            return Finding(
                "worse",
                "turbo",
                "on",
                f"Speed depends on temperature and neighbours; switch it off in {path}.",
            )
    return Finding("ok", "turbo", "off, or not visible")


def _gpu() -> Finding:
    from perfci.measure.gpu_watch import open_gpu_watch

    watch = open_gpu_watch()
    if watch is None:
        return Finding("ok", "GPU", "no NVIDIA driver here; GPU metrics are not measured")
    state = watch.read()
    if state.compute_pids:
        return Finding(
            "worse",
            "GPU",
            f"used by {counted(len(state.compute_pids), 'other process')}",
            "Bursts beside them are set aside; stop them (nvidia-smi shows which).",
        )
    if state.slowdown:
        return Finding(
            "worse", "GPU", f"slowed down: {state.slowdown}", "Cool it, or raise its power limit."
        )
    return Finding("ok", "GPU", f"{state.temperature} °C, SM clock {state.sm_clock} MHz")


def _secrets(environment: Mapping[str, str]) -> Finding:
    present = [name for name in ("GITHUB_TOKEN", "GH_TOKEN") if environment.get(name)]
    if present:
        return Finding(
            "impossible",
            "secrets",
            f"{present[0]} is set; benchmarks could read it",
            "Measure in a job without it, or with --allow-token.",
        )
    return Finding("ok", "secrets", "no token in the environment")
