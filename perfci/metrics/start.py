"""Time from a fresh process to the end of its first call, and of the imports in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from perfci.metrics import Collector, Moved, Reading
from perfci.model.case import Metric
from perfci.model.worker import WorkerOutput
from perfci.stats.quantile import median
from perfci.units import format_value

if TYPE_CHECKING:
    from perfci.model.report import Explanation

PLACE = 2
METRICS = {
    Metric("cold_start", "s", "per_worker", 0.10, "fail"): (
        "from starting a fresh process to the end of its first call, compile cache warm"
    ),
    Metric("import_time", "s", "per_worker", 0.10, "warn"): ("the imports of the benchmark file"),
}
_LEAST_GROWTH_S = 0.001
"""Less than a millisecond of a start explains nothing that anyone would look for."""


class Start(Collector):
    """Takes the worker's own clock readings."""

    def after_bursts(self) -> Reading:
        """Return both, where the start was disturbed by nothing."""
        order = self.scene.order
        if not order.cold_start:
            why = "both sides started at once"
            return Reading(missing=dict.fromkeys(("cold_start", "import_time"), why))
        imports = {"import_time": self.scene.imports}
        if self.scene.compiled() and order.cold_cache:
            return Reading(imports, {"cold_start": "the compile cache was empty"})
        return Reading({**imports, "cold_start": self.scene.start})


COLLECTOR = Start


def explain(moved: Moved) -> Iterator[Explanation]:
    """Yield the phase of the cold start that grew most."""
    if "cold_start" not in moved.regressed:
        return
    before, after = _phases(moved.base), _phases(moved.head)
    grown = [(after[name] - before[name], name) for name in after if name in before]
    growth, name = max(grown, default=(0.0, ""))
    if growth > _LEAST_GROWTH_S:
        shown = [format_value(phases[name], "s") for phases in (before, after)]
        yield moved.because("cold_start", "phase", f"{name}: {shown[0]} → {shown[1]}")


def _phases(outputs: Sequence[WorkerOutput]) -> dict[str, float]:
    names = dict.fromkeys(name for output in outputs for name in output.phases)
    return {name: median([o.phases[name] for o in outputs if name in o.phases]) for name in names}
