"""How long it takes from a fresh process to the end of its first call, and the imports in it."""

from __future__ import annotations

from perfci.model.metric import Metric

PLACE = 2
METRICS = {
    Metric("cold_start", "s", "per_worker", 0.10, "fail"): (
        "from starting a fresh process to the end of its first call, compile cache warm"
    ),
    Metric("import_time", "s", "per_worker", 0.10, "warn"): ("the imports of the benchmark file"),
}
