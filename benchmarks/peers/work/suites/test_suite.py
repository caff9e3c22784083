"""The suite for pytest-benchmark."""

import pytest
from peerwork import NAMES, build


@pytest.mark.parametrize("name", NAMES)
def test_work(benchmark, name):
    benchmark(build(name))
