"""One class a benchmark, built in its constructor.

Not in ``setup``: with a setup hook asv 0.6.6 times single calls instead of choosing how many fit
into ``sample_time``, which microseconds of work would not survive.
"""

from peerwork import build


class Eager:
    def __init__(self):
        self.call = build("eager")

    def time_call(self):
        self.call()


class Compiled:
    def __init__(self):
        self.call = build("compiled")

    def time_call(self):
        self.call()


class MemoryBound:
    def __init__(self):
        self.call = build("memory_bound")

    def time_call(self):
        self.call()


class Allocating:
    def __init__(self):
        self.call = build("allocating")

    def time_call(self):
        self.call()


class Tiny:
    def __init__(self):
        self.call = build("tiny")

    def time_call(self):
        self.call()


class Loading:
    def __init__(self):
        self.call = build("loading")

    def time_call(self):
        self.call()
