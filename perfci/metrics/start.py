"""How long it takes from a fresh process to the end of its first call, and the imports in it."""

from __future__ import annotations

from perfci.metrics import Collector, Reading
from perfci.model.metric import Metric

PLACE = 2
METRICS = {
    Metric("cold_start", "s", "per_worker", 0.10, "fail"): (
        "from starting a fresh process to the end of its first call, compile cache warm"
    ),
    Metric("import_time", "s", "per_worker", 0.10, "warn"): ("the imports of the benchmark file"),
}


class Start(Collector):
    """Takes the worker's own clock readings."""

    def after_bursts(self) -> Reading:
        """Return both, where the start was disturbed by nothing."""
        order = self.scene.order
        if not order.cold_start:
            why = "both sides started at once"
            return Reading(missing=dict.fromkeys(("cold_start", "import_time"), why))
        imports = {"import_time": self.scene.imports}
        if self.scene.work.compiled and order.cold_cache:
            return Reading(imports, {"cold_start": "the compile cache was empty"})
        return Reading({**imports, "cold_start": self.scene.start})


COLLECTOR = Start
