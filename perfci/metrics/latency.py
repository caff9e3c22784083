"""Time of warm calls: percentiles, mean, spread, and the device's part of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from operator import mul

from perfci.metrics import Collector, Reading, Warm
from perfci.model.case import Metric
from perfci.stats.quantile import median, quantile, samples_needed, tail_quantile

PLACE = 1
METRICS = {
    Metric("latency_p50", "s", "sampled", 0.05, "fail", undecided="inconclusive", always=True): (
        "median time of one warm call; the device is synchronised before both clock readings"
    ),
    Metric("latency_p95", "s", "sampled", 0.10, "fail"): (
        "95th percentile of the calls; missing, with a reason, if a worker has fewer than 59 "
        "samples"
    ),
    Metric("latency_p99", "s", "sampled", 0.10, "fail"): (
        "99th percentile of the calls; needs 299 samples per worker"
    ),
    Metric("latency_mean", "s", "sampled", 0.20, "fail"): "mean of the calls",
    Metric("latency_sd", "s", "sampled", 0.50, "info"): "standard deviation of the calls",
    Metric("latency_max", "s", "sampled", 0.50, "info"): "the slowest call",
    Metric("device_time_p50", "s", "sampled", 0.05, "warn"): (
        "median time between two CUDA events around the call, without the wait for its launch; if "
        "it is far below the latency, launching is the bottleneck"
    ),
    Metric("throughput", "items/s", "sampled", 0.05, "info", "higher"): (
        "`items` ÷ mean latency, if the benchmark gives `items`; higher is better"
    ),
    Metric("jitter", "ratio", "sampled", 0.50, "info"): (
        "(p99 − p50) ÷ p50: how uneven the calls are"
    ),
    Metric(
        "lead_in_excess", "ratio", "per_worker", 0.5, "warn", absolute=True, zero_if_absent=True
    ): (
        "mean of a burst's unrecorded first calls ÷ mean of its recorded calls, − 1: shows work "
        "that no latency includes; less than 0.5 counts as 0"
    ),
    Metric("torch_threads", "count", "exact", 0.0, "info", "higher", absolute=True): (
        "torch's compute threads: perfci's setting, or the number that imports or set-up chose"
    ),
}
TAILS = {"latency_p95": "p95", "latency_p99": "p99", "latency_mean": "mean"}
"""Metrics that change if the median does, or by themselves, with their short names."""
_NEGLIGIBLE_EXCESS = 0.5
_PERCENTILES = {"latency_p50": 0.5, "latency_p95": 0.95, "latency_p99": 0.99}


class Latency(Collector):
    """Reads torch's threads, and why there is no ``device_time_p50``. ``reduce`` has the rest."""

    def after_bursts(self) -> Reading:
        """Return the threads if torch is imported, and the reason if there is one."""
        torch = sys.modules.get("torch")
        threads = {"torch_threads": float(torch.get_num_threads())} if torch else {}
        why = self.scene.missing_reason("device_time_p50")
        return Reading(threads, {"device_time_p50": why} if why else {})


COLLECTOR = Latency


def reduce(warm: Warm) -> Reading:
    """Return the metrics of warm calls. A percentile with too few samples is missing."""
    samples, items = warm.samples, warm.measurement.items
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for metric, q in _PERCENTILES.items():
        needed = samples_needed(q)
        if len(samples) >= needed:
            values[metric] = tail_quantile(samples, q)
        else:
            missing[metric] = f"{len(samples)} samples a worker; needs {needed}"
    if samples:
        mean = sum(samples) / len(samples)
        values |= {"latency_mean": mean, "latency_max": samples[-1]}
        if len(samples) > 1:
            apart = [sample - mean for sample in samples]
            squares = math.fsum(map(mul, apart, apart))
            values["latency_sd"] = math.sqrt(squares / (len(samples) - 1))
        blocks = [block for block in warm.measurement.blocks if not block.set_aside]
        leading = sum(sum(block.lead_ins) for block in blocks)
        excess = sum(block.leading for block in blocks) / max(1, leading) / mean - 1.0
        if excess >= _NEGLIGIBLE_EXCESS:
            values["lead_in_excess"] = excess
        if items:
            values["throughput"] = items / mean
        else:
            missing["throughput"] = "the benchmark gives no `items`"
        if "latency_p99" in values:
            middle = values["latency_p50"]
            values["jitter"] = (values["latency_p99"] - middle) / middle
        else:
            missing["jitter"] = missing["latency_p99"]
    bursts = {"latency_p50": _medians(warm.bursts)}
    if warm.device_samples:
        values["device_time_p50"] = quantile(warm.device_samples, 0.5)
        bursts["device_time_p50"] = _medians(warm.device_bursts)
    return Reading(values, missing, bursts=bursts)


def _medians(by_burst: Sequence[Sequence[float]]) -> tuple[float | None, ...]:
    return tuple(median(samples) if samples else None for samples in by_burst)
