"""What work sees of its own calls: processes' time and memory of commands."""

from __future__ import annotations

from itertools import chain

from perfci.metrics import NOTHING, Collector, Reading, Warm
from perfci.model.metric import Metric
from perfci.stats.quantile import median

PLACE = 1.5
METRICS = {
    Metric("command_cpu_time", "s", "per_worker", 0.05, "warn"): (
        "[a command's](running-commands.md) processor time, user and system, its children's "
        "included: median of the calls"
    ),
    Metric("command_user_time", "s", "per_worker", 0.10, "info"): (
        "its part outside of the kernel, mean"
    ),
    Metric("command_system_time", "s", "per_worker", 0.10, "info"): "its part in the kernel, mean",
    Metric("command_peak_memory", "bytes", "per_worker", 0.10, "warn"): (
        "the most resident memory of its largest process: median of the calls"
    ),
}


class Observed(Collector):
    """Asks the work for what it saw of its calls since it was warm."""

    def warm(self) -> None:
        """Let the work forget the calls that warmed it up."""
        if self.scene.work.observer:
            self.scene.work.observer.begin()

    def after_bursts(self) -> Reading:
        """Return what the work saw."""
        observer = self.scene.work.observer
        return observer.reading() if observer else NOTHING


COLLECTOR = Observed


def reduce(warm: Warm) -> Reading:
    """Return the median of what was observed of each call, and those of bursts side by side."""
    values = {name: median([*chain(*bursts)]) for name, bursts in warm.observed.items()}
    return Reading(
        values,
        bursts={
            name: tuple(median(calls) if calls else None for calls in bursts)
            for name, bursts in warm.observed.items()
        },
    )
