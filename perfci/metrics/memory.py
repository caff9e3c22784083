"""Memory: the device's as torch counts it, and the host's as the kernel does."""

from __future__ import annotations

from perfci.model.metric import Metric

PLACE = 4
METRICS = {
    Metric("peak_device_memory", "bytes", "exact", 0.10, "fail", undecided="inconclusive"): (
        "most that torch's allocator had handed out during warm calls"
    ),
    Metric("peak_device_memory_reserved", "bytes", "exact", 0.10, "info"): (
        "most that it had taken from the device"
    ),
    Metric(
        "peak_host_memory",
        "bytes",
        "per_worker",
        0.10,
        "fail",
        undecided="inconclusive",
        always=True,
    ): (
        "most memory of the worker's process during up to five more warm calls, the allocator's "
        "free pages given back before each; torch itself is in it"
    ),
    Metric(
        "host_memory_over_setup",
        "bytes",
        "per_worker",
        float(4 << 20),
        "fail",
        absolute=True,
        share=0.10,
        undecided="inconclusive",
        always=True,
    ): (
        "that peak − what the process had when set-up was done: the "
        "[working memory](statistics.md#memory)"
    ),
    Metric("memory_growth", "bytes/call", "exact", 16.0, "warn", absolute=True): (
        "slope of allocated memory over warm calls: a leak"
    ),
}
