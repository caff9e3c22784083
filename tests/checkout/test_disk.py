"""Full and read-only disks, real ones: what is said, and what is left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfci.errors import OutsideError
from perfci.measure.checkout.build import BuildRecipe
from perfci.measure.checkout.side_folders import SideFolders
from tests.builders.project import Project
from tests.builders.repository import mounted, opened, three_commits


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = three_commits(tmp_path / "project")
    (project.folder / "large").write_bytes(os.urandom(2 << 20))
    project.commit("Large")
    return project


def test_a_full_disk_says_what_to_do_and_keeps_nothing(project: Project, tmp_path: Path) -> None:
    resolved = opened(project).resolve("HEAD")
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=1m", "tmpfs") as cache:
        side = SideFolders(cache, opened(project)).side(resolved)
        with pytest.raises(OutsideError, match="PERFCI_CACHE_DIR") as caught, side:
            pytest.fail("2 MiB fit into 1 MiB")
        assert caught.value.slug == "disk-full"
        assert caught.value.exit_code == 4
        assert list(cache.glob("*/trees/*")) == []
    assert "perfci-" not in project.git("worktree", "list")


def test_a_build_that_fills_the_disk_says_so(project: Project, tmp_path: Path) -> None:
    resolved = opened(project).resolve("HEAD~1")
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=1m", "tmpfs") as cache:
        side = SideFolders(cache, opened(project)).side(
            resolved,
            BuildRecipe(
                build=["dd if=/dev/zero of=made bs=1k count=4k"], environment=dict(os.environ)
            ),
        )
        with pytest.raises(OutsideError, match="PERFCI_CACHE_DIR") as caught, side:
            pytest.fail("4 MiB fit into 1 MiB")
        assert caught.value.slug == "disk-full"
        assert not list(cache.glob("*/trees/*.complete"))
