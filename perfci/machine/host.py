"""The facts of this machine that decide speed."""

from __future__ import annotations

import os
import platform
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")


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
