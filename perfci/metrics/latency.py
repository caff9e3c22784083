"""How long warm calls take: percentiles, mean and jitter, and what the device takes of it."""

from __future__ import annotations

from perfci.metrics import NOTHING, Collector, Reading
from perfci.model.metric import Metric

PLACE = 1
METRICS = {
    Metric("latency_p50", "s", "sampled", 0.05, "fail", undecided="inconclusive", always=True): (
        "median time of one warm call; the device is synchronised before both clock readings"
    ),
    Metric("latency_p95", "s", "sampled", 0.10, "warn"): (
        "95th percentile; needs 59 samples a worker, else it is missing and says so"
    ),
    Metric("latency_p99", "s", "sampled", 0.10, "warn"): (
        "99th percentile; needs 299 samples a worker"
    ),
    Metric("latency_mean", "s", "sampled", 0.05, "info"): "mean of the same calls",
    Metric("device_time_p50", "s", "sampled", 0.05, "warn"): (
        "median between two CUDA events around the call; far below the latency, launching is the "
        "bottleneck"
    ),
    Metric("throughput", "items/s", "sampled", 0.05, "info", "higher"): (
        "`items` ÷ mean latency, where the benchmark gives `items`; higher is better"
    ),
    Metric("jitter", "ratio", "sampled", 0.50, "info"): (
        "(p99 − p50) ÷ p50: how uneven the calls are"
    ),
}


class Latency(Collector):
    """Says why there is no time of a device's own."""

    def after_bursts(self) -> Reading:
        """Return the reason, if there is one."""
        why = self.scene.why_not("device_time_p50")
        return Reading(missing={"device_time_p50": why}) if why else NOTHING


COLLECTOR = Latency
