"""The clocks, taken before any code of a library or a benchmark runs.

What replaces ``time.perf_counter_ns``, a test's frozen clock say, replaces it for itself only.
"""

from time import monotonic_ns, perf_counter, perf_counter_ns

__all__ = ["monotonic_ns", "perf_counter", "perf_counter_ns"]
