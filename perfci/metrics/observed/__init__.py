"""Processes that calls start: their time, and what a command sees of its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from perfci.metrics import NOTHING, Collector, Reading, Scene, Warm
from perfci.metrics.observed.tree import Spent
from perfci.model.metric import Metric
from perfci.stats.quantile import median

PLACE = 1.5
_OF_COMMANDS = "command_cpu_time"
METRICS = {
    Metric("children_cpu_time", "s", "per_worker", 0.05, "warn"): (
        "processor time of [processes that the calls start or use](benchmarks.md#processes): all "
        "of it from warm-up to the last burst ÷ calls; a command has the next row instead"
    ),
    Metric(_OF_COMMANDS, "s", "per_worker", 0.05, "warn"): (
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


class Children:
    """Sees what the processes below this one take, whoever started them."""

    def __init__(self, scene: Scene) -> None:
        self._calls = scene.calls
        self._before = Spent.now()

    def begin(self) -> None:
        """Forget what they took so far."""
        self._before = Spent.now()

    def reading(self) -> Reading:
        """Return what they took of a call since; nothing where there were none."""
        now, calls = Spent.now(), self._calls()
        if not (calls and self._before.any_until(now)):
            return NOTHING
        # less only where one ended that this process can't wait for: a grandchild given to init
        return Reading({"children_cpu_time": max(0.0, now.cpu_s - self._before.cpu_s) / calls})


class Observed(Collector):
    """Asks what sees the calls for what it saw since the work was warm."""

    def warm(self) -> None:
        """Forget the calls that warmed it up."""
        own = self.scene.work.observer
        self._observers = [*([own] if own else []), Children(self.scene)]
        for one in self._observers:
            one.begin()

    def after_bursts(self) -> Reading:
        """Return what was seen."""
        first, *others = (one.reading() for one in self._observers)
        if others and _OF_COMMANDS not in first.values:  # whose processes are counted there
            return replace(first, values={**first.values, **others[0].values})
        return first


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
