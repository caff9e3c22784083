"""The project whose shards Slurm measures, real or faked."""

from __future__ import annotations

import pytest

from tests.builders.project import NOISE_PASSES, QUICK, Project


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """``main`` and ``feature``, of which the library differs, and nothing gets slower."""
    project = Project(tmp_path_factory.mktemp("parts") / "project")
    project.write("pyproject.toml", QUICK + NOISE_PASSES)
    project.counting(1000)
    project.commit("base")
    project.git("checkout", "--quiet", "-b", "feature")
    project.counting(1001)
    project.commit("head")
    return project
