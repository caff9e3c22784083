"""A folder of benchmarks for workers to measure."""

from __future__ import annotations

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
