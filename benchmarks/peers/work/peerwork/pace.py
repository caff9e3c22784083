"""A real slow-down of known size: after each call, spin for a share of the time it took."""

from time import perf_counter_ns

FORGIVEN_NS = 200.0


def paced(work, share):
    """Return ``work`` made slower by ``share``; with 0 the same code runs and never spins.

    What a spin ran too long (up to one clock reading) is taken off the next one: it would be a
    share of its own in a call of microseconds. Not what the host took away during a spin: that
    would cancel the slow-down of many calls to come.
    """
    owed = 0.0

    def call():
        nonlocal owed
        started = perf_counter_ns()
        result = work()
        due = owed + (perf_counter_ns() - started) * share
        # A second reading, which the plain version pays for too: counting the spin from the
        # first would take this arithmetic for part of it.
        now = begun = perf_counter_ns()
        while now - begun < due:
            now = perf_counter_ns()
        owed = max(due - (now - begun), -FORGIVEN_NS)
        return result

    return call
