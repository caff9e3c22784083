"""The suite for perfci."""

from peerwork import NAMES, build

import perfci


def _define(name):
    @perfci.benchmark(name=name)
    def benchmark():
        return build(name)

    return benchmark


for _name in NAMES:
    globals()[_name] = _define(_name)
