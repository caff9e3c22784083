"""What the first call of compiled work costs beyond a warm one."""

from __future__ import annotations

from perfci.model.metric import Metric

PLACE = 3
METRICS = {
    Metric("compile_time", "s", "per_worker", 0.10, "fail", rounds_setting="compile_rounds"): (
        "first call − warm median, with an empty compile cache"
    ),
    Metric("compile_time_cached", "s", "per_worker", 0.10, "warn"): (
        "the same with a warm compile cache"
    ),
}
