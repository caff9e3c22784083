"""A folder of benchmarks for workers to measure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.warm import Warm
from tests.worker.driver import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A side's tree, empty but for the folder of its benchmarks."""
    return Bench(tmp_path / "tree")


@pytest.fixture
def torch_bench(tmp_path: Path, warm: Warm) -> Bench:
    """The same as ``bench``, whose workers find torch imported."""
    return Bench(tmp_path / "tree", warm)


@pytest.fixture(scope="session")
def forking() -> Iterator[Warm]:
    """A process that has what each worker imports first, and forks workers."""
    process = Warm(torch=False)
    yield process
    process.close()


@pytest.fixture
def forked_bench(tmp_path: Path, forking: Warm) -> Bench:
    """The same as ``bench``, for tests of what a worker does once it has started."""
    return Bench(tmp_path / "tree", forking)
