"""The clocks, taken before any code of a library or a benchmark runs.

A worker imports this module first. If something replaces ``time.perf_counter`` later, such as a
test's frozen clock, these names keep the real clocks.
"""

from time import monotonic, monotonic_ns, perf_counter, perf_counter_ns, sleep, time_ns

__all__ = ["monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep", "time_ns"]
