"""Looking at the cores: may workers be pinned, is something else running, what sets the clocks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from perfci.errors import UsageError
from perfci.machine.finding import Finding
from perfci.machine.host import CPUS, governor
from perfci.machine.quiet import plan_cores
from perfci.model.settings import MeasureSettings, Quiet

_PIN_PROBE = """
import os, sys
os.sched_setaffinity(0, map(int, sys.argv[1:]))
print(*sorted(os.sched_getaffinity(0)))
"""


def cores(available: Sequence[int], settings: MeasureSettings, quiet: Quiet) -> Finding:
    """Say whether workers get cores of their own, as the configuration asks for."""
    try:
        plan = plan_cores(available, cores=settings.cores, threads=settings.threads, pin=quiet.pin)
    except UsageError as error:
        return Finding("impossible", "cores", error.message, error.advice)
    if not quiet.pin:
        return Finding(
            "worse",
            "cores",
            f"{len(available)}; workers are not pinned: `pin` is false in the configuration",
            "They move between cores, and share them with the parent. Take it out of "
            "[tool.perfci.quiet].",
        )
    if unpinned := _pinned(plan.workers):
        return unpinned
    if len(available) < 2:
        return Finding(
            "worse",
            "cores",
            "only one may be used",
            "The parent shares it with the workers; give the runner two, or more.",
        )
    return Finding("ok", "cores", f"{len(available)}; workers are pinned to their own")


def _pinned(wanted: Sequence[int]) -> Finding | None:
    """Pin a child as workers are; return what is wrong with that, if anything is."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _PIN_PROBE, *map(str, wanted)],
        capture_output=True,
        text=True,
        check=False,
    )
    asked = f"cores {', '.join(map(str, wanted))}"
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return Finding(
            "impossible",
            "cores",
            f"a process can't be pinned to {asked}: {last}",
            "Let the container or sandbox allow sched_setaffinity, or set `pin = false` in "
            "[tool.perfci.quiet].",
        )
    if done.stdout.split() != [str(core) for core in sorted(wanted)]:
        return Finding(
            "worse",
            "cores",
            f"a process pinned to {asked} is on {done.stdout.strip()}",
            "Something takes pinning back (a daemon that places processes, or a sandbox): workers "
            "move between cores.",
        )
    return None


def load(average: float, count: int) -> Finding:
    """Say whether something else keeps the ``count`` cores busy, by the load ``average``."""
    found = f"{average:.1f} over the last minute"
    if average > 0.5 * count:
        return Finding(
            "worse", "load", found, "Something else is running; wait for it, or stop it."
        )
    return Finding("ok", "load", found)


def frequency_governor(cpus: Path = CPUS) -> Finding:
    """Say whether clock speeds follow the load."""
    name = governor(cpus)
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


def turbo(cpus: Path = CPUS) -> Finding:
    """Say whether clock speeds follow temperature and neighbours."""
    for path, on in (
        (cpus / "intel_pstate" / "no_turbo", "0"),
        (cpus / "cpufreq" / "boost", "1"),
    ):
        if path.exists() and path.read_text(encoding="ascii").strip() == on:
            return Finding(
                "worse",
                "turbo",
                "on",
                f"Speed depends on temperature and neighbours; switch it off in {path}.",
            )
    return Finding("ok", "turbo", "off, or not visible")
