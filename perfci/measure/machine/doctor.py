"""Looking at a machine before it measures: each check is a function that gives one finding."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfci.config.loading import Config, load_config
from perfci.errors import OutsideError, UsageError
from perfci.measure.machine.hardware import (
    HardwareFinding,
    card_of,
    cores,
    frequency_governor,
    gpu,
    load,
    turbo,
)
from perfci.measure.machine.isolation import (
    OVERRIDE,
    SWITCH,
    git_secrets,
    obstacle,
    overridden,
    require_exec,
    tokens_in,
)
from perfci.measure.machine.looks import LooksLibrary, seen_from_below
from perfci.measure.machine.quiet import (
    available_cores,
    child_environment,
    undivided_reason,
    unpassed_of_job,
)
from perfci.metrics.observed.processes import own_cgroup
from perfci.model.worker import Quiet
from perfci.units import first_of

_LEAST_DISK_GIB = 2.0
_LEAST_MEMORY_GIB = 2.0
_PROBE_S = 60.0
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


def examine(
    python: str,
    cache: Path,
    environment: Mapping[str, str],
    root: Path,
    explicit: Path | None = None,
    launcher: Sequence[str] = (),
) -> tuple[HardwareFinding, ...]:
    """Return every check's finding, in the order of the checks.

    ``root`` is the repository's, whose configuration, or else the file ``explicit``, says how
    workers are kept quiet. Where a ``launcher`` can't be run, nothing is known of the Python behind
    it.
    """
    import pynvml

    config, misread = _configuration(root, explicit)
    launched = _launcher(launcher, python, environment)
    of_python: tuple[Callable[[], HardwareFinding], ...] = (
        lambda: _python(python, environment, launcher),
        lambda: gpu(pynvml, lambda: card_of(python, environment, launcher)),
    )
    first, last = ((finding,) for finding in of_python) if _is_possible(launched) else ((), ())
    unpassed = unpassed_of_job(environment, config.pass_env)
    of_job = (lambda: _job(unpassed),) if unpassed else ()
    checks: tuple[Callable[[], HardwareFinding], ...] = (
        *first,
        _git,
        lambda: _compiler(environment),
        lambda: _looks(seen_from_below(cache, environment)),
        lambda: _disk(cache),
        _memory,
        lambda: _cgroup(undivided_reason(own_cgroup())),
        lambda: cores(available_cores(), config.settings, config.quiet),
        lambda: load(os.getloadavg()[0], len(available_cores())),
        frequency_governor,
        turbo,
        *last,
        *of_job,
        lambda: _secrets(environment),
        lambda: _git_secrets(environment, root),
        lambda: _isolation(environment),
    )
    return (*misread, *launched, *(check() for check in checks))


def _configuration(root: Path, explicit: Path | None) -> tuple[Config, tuple[HardwareFinding, ...]]:
    """Return the configuration, or the defaults and a finding where it can't be read."""
    try:
        return load_config(root, explicit), ()
    except UsageError as error:
        finding = HardwareFinding("impossible", "configuration", error.message, error.advice)
        return Config(), (finding,)


def _launcher(
    launcher: Sequence[str], python: str, environment: Mapping[str, str]
) -> tuple[HardwareFinding, ...]:
    """Say whether the launcher becomes Python; nothing where there is none."""
    if not launcher:
        return ()
    try:
        require_exec(launcher, python, environment)
    except UsageError as error:
        return (HardwareFinding("impossible", "launcher", error.message, error.advice),)
    return (HardwareFinding("ok", "launcher", f"`{shlex.join(launcher)}` becomes Python"),)


def _is_possible(launched: Sequence[HardwareFinding]) -> bool:
    return all(finding.level == "ok" for finding in launched)


def _python(
    python: str, environment: Mapping[str, str], launcher: Sequence[str] = ()
) -> HardwareFinding:
    child = child_environment(environment, Quiet(), 1, (), {})
    try:
        done = subprocess.run(
            [*launcher, python, "-P", "-c", _TORCH_PROBE],
            env=child, capture_output=True, text=True, check=False, timeout=_PROBE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return HardwareFinding(
            "impossible",
            "Python",
            f"{python}: no answer in {_PROBE_S:g} s",
            "Name one with --python.",
        )
    if not done.returncode and not done.stdout.startswith("{"):
        return HardwareFinding(
            "impossible", "Python", f"{python} is no Python", "Name one with --python."
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return HardwareFinding(
            "impossible", "Python", f"{python}: {last}", "Name one with --python."
        )
    answer = json.loads(done.stdout)
    if launcher:  # of that name it is another one behind it
        python = f"{answer['executable']}, behind the launcher"
    if tuple(answer["version_info"]) < (3, 11):
        return HardwareFinding(
            "impossible",
            "Python",
            f"{answer['python']} at {python}",
            "Workers need Python 3.11 or newer.",
        )
    if answer["torch"] is None:
        return HardwareFinding(
            "worse",
            "Python",
            f"{answer['python']} at {python}, without torch",
            "Install torch there, or name the Python that has it with --python; benchmarks "
            "without torch can be measured as they are.",
        )
    return HardwareFinding(
        "ok", "Python", f"{answer['python']} with torch {answer['torch']} at {python}"
    )


def _git() -> HardwareFinding:
    path = shutil.which("git")
    if path is None:
        return HardwareFinding("impossible", "git", "not found", _GIT_ADVICE)
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=False, timeout=_PROBE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return HardwareFinding("impossible", "git", f"{path} can't be run: {error}", _GIT_ADVICE)
    match = re.search(r"(\d+)\.(\d+)\S*", done.stdout)
    if done.returncode or not match:
        last = (f"{done.stdout}\n{done.stderr}".strip().splitlines() or ["nothing"])[-1]
        return HardwareFinding("impossible", "git", f"{path} --version says: {last}", _GIT_ADVICE)
    if (int(match[1]), int(match[2])) < _LEAST_GIT:
        return HardwareFinding("impossible", "git", f"{match[0]} at {path}", _GIT_ADVICE)
    return HardwareFinding("ok", "git", match[0])


def _compiler(environment: Mapping[str, str]) -> HardwareFinding:
    names = [environment["CXX"]] if environment.get("CXX") else ["g++", "clang++"]
    for name in names:
        if path := shutil.which(name):
            return HardwareFinding("ok", "C++ compiler", path)
    return HardwareFinding(
        "worse",
        "C++ compiler",
        f"none of {', '.join(names)} found",
        "torch.compile on a CPU needs one: install g++ (Debian: apt install g++), or set CXX.",
    )


def _looks(looks: LooksLibrary) -> HardwareFinding:
    if looks.why:
        unseen = f"not seen ({looks.why}): each case is measured in full, same code or not"
        return HardwareFinding("worse", "file looks", unseen, looks.advice)
    text = f"seen from below, by a library that {looks.compiler} built"
    return HardwareFinding("ok", "file looks", text)


def _disk(cache: Path, usage: Callable[[Path], Any] = shutil.disk_usage) -> HardwareFinding:
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free = usage(existing).free / 2**30
    try:
        with tempfile.NamedTemporaryFile(dir=existing):
            pass
    except OSError as error:
        return HardwareFinding(
            "impossible",
            "cache folder",
            f"{existing} can't be written: {error.strerror}",
            "Set PERFCI_CACHE_DIR to a folder that can.",
        )
    if free < _LEAST_DISK_GIB:
        return HardwareFinding(
            "worse",
            "cache folder",
            f"{free:.1f} GiB free at {existing}",
            f"Worktrees and compile caches may need {_LEAST_DISK_GIB:.0f} GiB: make room, or set "
            "PERFCI_CACHE_DIR.",
        )
    return HardwareFinding("ok", "cache folder", f"{free:.0f} GiB free at {existing}")


def _memory() -> HardwareFinding:
    import psutil

    free = psutil.virtual_memory().available / 2**30
    if free < _LEAST_MEMORY_GIB:
        return HardwareFinding(
            "worse",
            "memory",
            f"{free:.1f} GiB available",
            "Two workers live at once, each with its own torch (about 0.3 GiB) and your model.",
        )
    return HardwareFinding("ok", "memory", f"{free:.0f} GiB available")


def _cgroup(why: str) -> HardwareFinding:
    if why:
        return HardwareFinding("ok", "cgroup", f"{why}: memory of what benchmarks start is sampled")
    return HardwareFinding(
        "ok", "cgroup", "delegated: the kernel counts memory of what benchmarks start"
    )


def _job(unpassed: Sequence[str]) -> HardwareFinding:
    names = first_of(unpassed, 3)
    text = f"{names} not passed to workers: they are of this process's place in its job"
    return HardwareFinding("ok", "job", f"{text}; `pass_env` passes what you name")


def _secrets(environment: Mapping[str, str]) -> HardwareFinding:
    present = tokens_in(environment)
    if not present:
        return HardwareFinding("ok", "secrets", "no token of GitHub's in the environment")
    text = f"{', '.join(present)} set; benchmarks can read that"
    if overridden(environment):
        return HardwareFinding(
            "worse", "secrets", f"{text}, as {OVERRIDE}=1 allows", "Take it away."
        )
    return HardwareFinding(
        "impossible", "secrets", text, "Measure in a job without it, or with --allow-token."
    )


def _git_secrets(environment: Mapping[str, str], root: Path) -> HardwareFinding:
    try:
        kept = git_secrets(root)
    except OutsideError as error:  # no git: the finding on git says what to do
        return HardwareFinding("worse", "git's credentials", error.message)
    if kept.settings:
        text = f"{', '.join(kept.settings)}; benchmarks can read that"
        advice = "Take it away; of actions/checkout: `persist-credentials: false`."
        if overridden(environment):
            return HardwareFinding(
                "worse", "git's credentials", f"{text}, as {OVERRIDE}=1 allows", advice
            )
        return HardwareFinding(
            "impossible", "git's credentials", text, f"{advice} Or --allow-token."
        )
    if kept.helpers:
        return HardwareFinding(
            "worse",
            "git's credentials",
            f"the credential helper {', '.join(kept.helpers)} gives them to whatever asks",
            "Where the code of others is measured, use a user without it.",
        )
    return HardwareFinding("ok", "git's credentials", "none in its configuration")


def _isolation(environment: Mapping[str, str]) -> HardwareFinding:
    reason = obstacle(environment)
    if not reason:
        return HardwareFinding(
            "ok",
            "isolation",
            "benchmarks run in a user namespace: the memory and environment of other processes "
            "are closed to them; files, the network and command lines are not",
        )
    why, advice = {
        "switched_off": (f"{SWITCH}=off", f"Unset {SWITCH}."),
        "no_tools": ("unshare or nsenter is missing", "Install util-linux."),
        "no_gpu_driver": ("the GPU's driver is not loaded whole", "Load it: nvidia-modprobe -u."),
        "refused": (
            "the kernel or the container allows no user namespace",
            "Allow one (on Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0).",
        ),
    }[reason]
    return HardwareFinding(
        "worse",
        "isolation",
        f"{why}: only perfci's own process is closed to benchmarks, and not to root's; those of "
        "the shell and the runner that started it are open",
        f"{advice} Or keep every secret out of the job.",
    )
