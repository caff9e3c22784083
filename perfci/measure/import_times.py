"""Pure: what ``-X importtime`` printed, as each package's time."""

from __future__ import annotations

import re

_LINE = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)$")


def import_times(log: str) -> dict[str, float]:
    """Return each module's own import time in s."""
    times: dict[str, float] = {}
    for line in log.splitlines():
        if match := _LINE.match(line):
            module = match.group(2)
            times[module] = times.get(module, 0.0) + int(match.group(1)) / 1e6
    return times


def without_import_times(log: str) -> str:
    """Return what the benchmark itself printed."""
    lines = log.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("import time:"))
