"""A compiled model."""

from work import compiled as work

import perfci


@perfci.benchmark
def compiled():
    return work.compiled()
