"""How a worker came to be: the phases before its set-up, which cold start counts."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Start:
    """Readings of the monotonic clock, in ns, from the spawn to the end of the imports.

    ``resumed_ns`` is when the worker went on: at once, or when its starter forked it. What lies
    between is the starter's waiting, and is no part of any start.
    """

    spawned_ns: int
    started_ns: int
    harness_ns: int
    imported_ns: int
    resumed_ns: int

    def forked(self, forked_ns: int) -> Start:
        """Return the start of a worker that was forked at ``forked_ns``."""
        return replace(self, resumed_ns=forked_ns)

    def until(self, now_ns: int) -> float:
        """Return the time in s from the spawn to ``now_ns``, waiting left out."""
        return (now_ns - self.spawned_ns - (self.resumed_ns - self.imported_ns)) / 1e9

    def imports(self) -> float:
        """Return how long the imports took, in s."""
        return (self.imported_ns - self.harness_ns) / 1e9

    def phases(self, later_harness_ns: int) -> dict[str, float]:
        """Return the phases up to the imports, in s; the harness's own work goes on after them."""
        return {
            "interpreter": (self.started_ns - self.spawned_ns) / 1e9,
            "harness": (self.harness_ns - self.started_ns + later_harness_ns) / 1e9,
            "imports": self.imports(),
        }
