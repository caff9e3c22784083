"""Pure: what ``-X importtime`` printed, as each package's time."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LINE = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)$")


def import_times(log: str) -> dict[str, float]:
    """Return each module's own import time in s."""
    times: dict[str, float] = {}
    for line in log.splitlines():
        if match := _LINE.match(line):
            module = match.group(2)
            times[module] = times.get(module, 0.0) + int(match.group(1)) / 1e6
    return times


def slowest(times: Mapping[str, float], count: int = 10) -> tuple[tuple[str, float], ...]:
    """Return the ``count`` slowest modules, the slowest first."""
    return tuple(sorted(times.items(), key=lambda item: (-item[1], item[0]))[:count])
