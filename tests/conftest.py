"""What all tests share: a project of a user's."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.project import Project


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--refresh-golden`` writes the golden files instead of comparing with them."""
    parser.addoption("--refresh-golden", action="store_true", help="rewrite tests/data/golden")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, with the reason, what needs torch or a GPU where there is none."""
    if importlib.util.find_spec("torch") is None:
        without = pytest.mark.skip(reason="torch is not installed")
        for item in items:
            if any(item.get_closest_marker(name) for name in ("torch", "compile", "gpu")):
                item.add_marker(without)
        return
    if any(item.get_closest_marker("gpu") for item in items):
        import torch

        if not torch.cuda.is_available():
            for item in items:
                if item.get_closest_marker("gpu"):
                    item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty repository with a quick configuration."""
    return Project(tmp_path / "project")
