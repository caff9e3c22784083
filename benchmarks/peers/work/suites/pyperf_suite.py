"""The suite for pyperf: each of its worker processes builds only the benchmark it measures."""

import functools

import pyperf


@functools.cache
def built(name):
    """Return the work of ``name``, built once a process and outside of the timed loop."""
    from peerwork import build

    return build(name)


def time_calls(loops, name):
    """Return the seconds that ``loops`` calls take (pyperf's documented time function)."""
    call = built(name)
    repeat = range(loops)
    started = pyperf.perf_counter()
    for _ in repeat:
        call()
    return pyperf.perf_counter() - started


if __name__ == "__main__":
    runner = pyperf.Runner()
    for benchmark in ("eager", "compiled", "memory_bound", "allocating", "tiny", "loading"):
        runner.bench_time_func(benchmark, time_calls, benchmark)
