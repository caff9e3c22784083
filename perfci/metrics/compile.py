"""What the first call of compiled work costs beyond a warm one."""

from __future__ import annotations

from perfci.metrics import NOTHING, Reading, Warm
from perfci.model.metric import Metric
from perfci.stats.quantile import median

PLACE = 3
METRICS = {
    Metric("compile_time", "s", "per_worker", 0.10, "fail", rounds_setting="compile_rounds"): (
        "first call − warm median, with an empty compile cache"
    ),
    Metric("compile_time_cached", "s", "per_worker", 0.10, "warn"): (
        "the same with a warm compile cache"
    ),
}
_NAMES = ("compile_time", "compile_time_cached")


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
