"""The clocks, taken before any code of a library or a benchmark runs: a worker imports this first.

What replaces ``time.perf_counter``, a test's frozen clock say, replaces it for itself only.
"""

from time import monotonic, monotonic_ns, perf_counter, perf_counter_ns

__all__ = ["monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"]
