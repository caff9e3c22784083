"""Calls of each kind of work, timed inside one process."""

from work import calls

import perfci


def _define(kind):
    @perfci.benchmark(name=kind)
    def benchmark():
        return getattr(calls, kind)()

    return benchmark


for _kind in (
    *("tiny", "python", "eager", "training", "memory_bound", "allocating", "generate"),
    *("convolution", "attention", "tails", "memory"),
):
    globals()[_kind] = _define(_kind)
