"""Full and read-only disks, real ones: what is said, and what is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
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
        assert not list(cache.glob("*/builds/*.complete"))


REMOVES = """\
import os, sys
from pathlib import Path
from perfci.measure.checkout.disk import remove_folder

os.chdir(sys.argv[1])  # a user who may not come here from above
if os.geteuid() == 0:  # whom no mode keeps out
    os.seteuid(12345)
remove_folder(Path("tree"))
"""


@pytest.mark.parametrize("mode", [0o000, 0o100, 0o300, 0o500])
def test_a_folder_that_its_owner_closed_is_removed_with_all_below(
    tmp_path: Path, mode: int
) -> None:
    mine = tmp_path / "mine"
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    (mine / "tree" / "closed" / "below").mkdir(parents=True)
    (mine / "tree" / "closed" / "below" / "file").touch()
    (mine / "tree" / "link").symlink_to(outside)
    if os.geteuid() == 0:
        for path in (mine, *mine.rglob("*")):
            os.chown(path, 12345, 12345, follow_symlinks=False)
    for name in ("closed/below", "closed", ""):
        (mine / "tree" / name).chmod(mode)
    command = [sys.executable, "-c", REMOVES, str(mine)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(mine.iterdir()) == []
    assert outside.stat().st_mode & 0o777 == 0o500
