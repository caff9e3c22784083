"""Time of the first call of compiled work beyond a warm one, and amount that was compiled.

The counts are private to torch, and read guarded: where one is absent the metric is, never 0.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from perfci.metrics import NOTHING, Collector, Moved, Reading, Warm
from perfci.metrics.graphs.counters import counters
from perfci.model.case import Metric
from perfci.model.worker import WorkerOutput
from perfci.stats.quantile import median, upper_median

if TYPE_CHECKING:
    from perfci.model.report import Explanation

PLACE = 3
METRICS = {
    Metric("compile_time", "s", "per_worker", 0.10, "fail", rounds_setting="compile_rounds"): (
        "first call − warm median, with an empty compile cache"
    ),
    Metric("compile_time_cached", "s", "per_worker", 0.10, "warn"): (
        "the same with a warm compile cache"
    ),
    Metric("captured_calls", "count", "exact", 0.0, "info", absolute=True): (
        "calls in the graphs that torch.compile made until the work was warm"
    ),
    Metric(
        "generated_kernels",
        "count",
        "exact",
        0.0,
        "info",
        absolute=True,
        rounds_setting="compile_rounds",
    ): "kernels that Inductor generated for them, with an empty compile cache",
}
_NAMES = ("compile_time", "compile_time_cached")
_CAPTURED, _KERNELS = "captured_calls", "generated_kernels"


class Compiling(Collector):
    """Takes how much was compiled between set-up and the bursts."""

    def before_setup(self) -> None:
        """Know what imports have compiled: that is not the work's."""
        self._before = _counts()

    def warm(self) -> None:
        """Look before more calls are made than a user waits for."""
        self._compiled = {
            name: count - self._before.get(name, 0) for name, count in _counts().items()
        }

    def after_bursts(self) -> Reading:
        """Return the counts; with a warm cache Inductor generates nothing."""
        if not self.scene.compiled():
            return Reading(missing=dict.fromkeys((_CAPTURED, _KERNELS), "not compiled"))
        warm = set() if self.scene.order.cold_cache else {_KERNELS}
        known = {name: float(n) for name, n in self._compiled.items() if n >= 0}
        return Reading({name: count for name, count in known.items() if name not in warm})


COLLECTOR = Compiling


def _counts() -> dict[str, int]:
    """Return this process's counts so far, those that its torch keeps."""
    counts = {}
    if (dynamo := counters()) is not None:
        counts[_CAPTURED] = dynamo.get("stats", Counter())["calls_captured"]
    kernels = getattr(sys.modules.get("torch._inductor.metrics"), "generated_kernel_count", None)
    if isinstance(kernels, int):
        counts[_KERNELS] = kernels
    return counts


def explain(moved: Moved) -> Iterator[Explanation]:
    """Yield how much more was compiled, where compiling takes longer."""
    worse = [name for name in _NAMES if name in moved.regressed]
    for name, what in ((_CAPTURED, "calls in graphs"), (_KERNELS, "generated kernels")):
        before, after = _count(moved.base, name), _count(moved.head, name)
        if worse and before is not None and after is not None and after > before:
            yield moved.because(worse[0], "compiled", f"{what}: {before:.0f} → {after:.0f}")


def _count(outputs: Sequence[WorkerOutput], name: str) -> float | None:
    counts = [output.values[name] for output in outputs if name in output.values]
    return upper_median(counts) if counts else None


def reduce(warm: Warm) -> Reading:
    """Return the one of the two that the worker's compile cache gives."""
    if not warm.measurement.compiled:
        later = "graphs" in warm.measurement.values
        why = "compiled in set-up or in a later call, not in the first" if later else "not compiled"
        return Reading(missing=dict.fromkeys(_NAMES, why))
    if not warm.samples:
        return NOTHING
    cold, cached = _NAMES
    took = max(0.0, warm.measurement.first_call_s - median(warm.samples))
    return Reading({cold if warm.cold_cache else cached: took})
