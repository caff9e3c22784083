"""Processes that calls start: their processor time, and what a command's own runs took."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from perfci.errors import Unusable
from perfci.metrics import NOTHING, Collector, Reading, Warm
from perfci.metrics.observed.processes import Spent, left_by_children, uptime_s
from perfci.model.case import Metric
from perfci.stats.quantile import median

PLACE = 1.5
_OF_COMMANDS = "command_cpu_time"
_NEGLIGIBLE_S = 1e-4
"""Processor time per call below this counts as this much: idle helpers wake up now and then."""
_CLOCK_S = 1e-6
"""Resolution of the processor time that is measured."""
_BUSY_AFTER_CALLS = "busy_after_calls"
_NEGLIGIBLE_SHARE = 0.05
"""Threads that are less busy than this between calls count as idle: they wake up now and then."""
_FEWEST_LEFT = 2
"""Fewest processes left running that are an error. A single one may be a pool's that grows."""
METRICS = {
    Metric(
        "children_cpu_time",
        "s",
        "per_worker",
        0.05,
        "fail",
        floor=_NEGLIGIBLE_S,
        step=_CLOCK_S,
        zero_if_absent=True,
    ): (
        "processor time of [processes that the calls start or use](benchmarks.md#processes), from "
        "warm-up to the last burst ÷ calls; less than 0.1 ms, or no process, counts as 0.1 ms; a "
        "command has `command_cpu_time` instead"
    ),
    Metric(
        _BUSY_AFTER_CALLS, "ratio", "per_worker", 0.10, "warn", absolute=True, zero_if_absent=True
    ): (
        "processor time of [other threads](benchmarks.md#processes) during the other side's turns "
        "÷ the time of these turns; less than 0.05 counts as 0"
    ),
    Metric(_OF_COMMANDS, "s", "per_worker", 0.05, "warn"): (
        "processor time of [a command](running-commands.md) and its children, user and system; "
        "median of the calls"
    ),
    Metric("command_user_time", "s", "per_worker", 0.10, "info"): (
        "processor time of a command outside the kernel, mean"
    ),
    Metric(
        "command_system_time", "s", "per_worker", 0.10, "info"
    ): "processor time of a command in the kernel, mean",
    Metric("command_peak_memory", "bytes", "per_worker", 0.10, "warn"): (
        "peak of resident memory of a command's largest process; median of the calls"
    ),
}


class Observed(Collector):
    """Takes the reading of the work's observer, and the processor time of processes below this one.

    These processes count whichever code started them, for the time since the work was warm.
    """

    def set_up(self) -> None:
        """Note when the calls begin: processes started before, by the set-up, may live on."""
        self._set_up_s = uptime_s()

    def warm(self) -> None:
        """Forget the warm-up's calls. Unusable if calls since set-up left processes running."""
        if self.scene.work.observer:
            self.scene.work.observer.begin()
        if left := left_by_children(since_s=self._set_up_s):
            raise _left(left)
        self._before = Spent.now()

    def after_bursts(self) -> Reading:
        """Return both readings as one."""
        observer, children = self.scene.work.observer, self._children()
        reading = observer.reading() if observer else NOTHING
        values = {**reading.values}
        if _OF_COMMANDS not in values:  # a command counts its own processes
            values |= children
        if (share := self.scene.busy_share()) >= _NEGLIGIBLE_SHARE:
            values[_BUSY_AFTER_CALLS] = share
        return replace(reading, values=values)

    def _children(self) -> dict[str, float]:
        """Return the processes' time per call. Nothing if there were no processes.

        Raises Unusable if each call has left a process running: these would all run during later
        calls.
        """
        now, calls = Spent.now(), self.scene.calls()
        if not (calls and self._before.any_until(now)):
            return {}
        more = now.running - self._before.running
        if more >= max(calls, _FEWEST_LEFT):
            raise _left(more)
        # lower than before only if a grandchild that was given to init has ended: this process
        # can't wait for it, so its time is lost
        return {"children_cpu_time": max(0.0, now.cpu_s - self._before.cpu_s) / calls}


def _left(count: int) -> Unusable:
    return Unusable(
        "left_processes",
        f"the calls ended and left processes running, {count} by now: wait for them in the call, "
        "or start them in the set-up",
    )


COLLECTOR = Observed


def reduce(warm: Warm) -> Reading:
    """Return the median over all calls of each observed metric, and its median in each burst."""
    values = {name: median([*chain(*bursts)]) for name, bursts in warm.observed.items()}
    return Reading(
        values,
        bursts={
            name: tuple(median(calls) if calls else None for calls in bursts)
            for name, bursts in warm.observed.items()
        },
    )
