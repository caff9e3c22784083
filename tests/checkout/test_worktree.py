"""A side's own worktree: what it holds, and what it leaves behind (nothing)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfci.measure.checkout.git import open_repository
from perfci.measure.checkout.side_folders import SideFolders
from tests.builders.project import Project
from tests.builders.repository import holder, opened, path_from, state, three_commits, worktrees_of


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return three_commits(tmp_path / "project")


def left_in(project: Project) -> list[str]:
    """The cache's trees and git's registrations of them."""
    registered = project.folder / ".git" / "worktrees"
    folders = [*project.cache.glob("*/trees"), *([registered] if registered.exists() else [])]
    return sorted(entry.name for folder in folders for entry in folder.iterdir())


def test_both_sides_have_their_own_files_and_leave_nothing(project: Project) -> None:
    repository, worktrees = opened(project), worktrees_of(project)
    project.write("value", "changed")
    project.write("untracked", "x")
    project.git("stash", "--include-untracked")
    project.git("stash", "apply")
    before = state(project)
    base, head = repository.resolve("HEAD~1"), repository.resolve(".")
    with worktrees.side(base) as one, worktrees.side(head) as other:
        assert (one / "value").read_text() == "two"
        assert not (one / "untracked").exists()
        assert (other / "value").read_text() == "changed"
        assert (other / "untracked").exists()
        assert len(str(one)) == len(str(other))
        at = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=one, text=True)
        assert at.strip() == base.commit
        (one / "written by a benchmark").mkdir(mode=0o500)
    assert state(project) == before
    assert left_in(project) == []
    assert worktrees.notes == []


def test_a_failing_session_leaves_nothing_either(project: Project) -> None:
    resolved = opened(project).resolve("HEAD")
    with pytest.raises(KeyboardInterrupt), worktrees_of(project).side(resolved):
        raise KeyboardInterrupt
    assert left_in(project) == []


def test_the_users_filters_run_and_the_users_hooks_do_not(project: Project) -> None:
    project.write(".gitattributes", "value filter=upper\n")
    project.commit("Filter")
    project.git("config", "filter.upper.smudge", "tr a-z A-Z")
    hooks = project.folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\ntouch '{project.folder.parent}/ran-{name}'\n")
        hook.chmod(0o700)
    project.write("value", "changed")
    with worktrees_of(project).side(opened(project).resolve(".")) as path:
        assert (path / "value").read_text() == "CHANGED"
    assert list(project.folder.parent.glob("ran-*")) == []


def test_the_users_own_worktrees_are_never_pruned(project: Project, tmp_path: Path) -> None:
    own = tmp_path / "on a disk that is away"
    project.git("worktree", "add", "--quiet", "--detach", str(own))
    shutil.rmtree(own)
    before = project.git("worktree", "list", "--porcelain")
    with worktrees_of(project).side(opened(project).resolve("HEAD")):
        pass
    worktrees_of(project).sweep()
    assert project.git("worktree", "list", "--porcelain") == before


def test_a_linked_worktree_of_the_users_can_be_measured(project: Project, tmp_path: Path) -> None:
    own = tmp_path / "linked"
    project.git("worktree", "add", "--quiet", "--detach", str(own), "HEAD~1")
    (own / "value").write_text("linked")
    repository = open_repository(own)
    assert repository.root == own
    with SideFolders(project.cache, repository).side(repository.resolve(".")) as path:
        assert (path / "value").read_text() == "linked"
    assert repository.id == opened(project).id
    assert (project.folder / "value").read_text() == "three"


def test_a_killed_runs_worktree_is_swept_and_a_living_ones_is_not(project: Project) -> None:
    with holder(project) as killed, holder(project) as living:
        dead, alive = path_from(killed), path_from(living)
        assert worktrees_of(project).sweep() == ()
        killed.kill()
        killed.wait()
        assert dead.exists()

        assert worktrees_of(project).sweep() == (dead,)

        assert (alive / "value").read_text() == "three"
        listed = project.git("worktree", "list", "--porcelain")
        assert str(alive) in listed
        assert str(dead) not in listed
        assert not dead.exists()
        assert left_in(project) == [alive.name, alive.name, f"{alive.name}.lock"]


_SESSIONS = """\
import sys
from pathlib import Path
from perfci.measure.checkout.git import open_repository
from perfci.measure.checkout.side_folders import SideFolders

root, cache = map(Path, sys.argv[1:])
repository = open_repository(root)
for _ in range(5):
    worktrees = SideFolders(cache, repository)
    worktrees.sweep()
    base, head = repository.resolve("HEAD~1"), repository.resolve(".")
    with worktrees.side(base) as one, worktrees.side(head) as other:
        assert (one / "value").read_text() == "two"
        assert (other / "value").read_text() == "changed"
    assert not worktrees.notes, worktrees.notes
"""


def test_concurrent_sessions_do_not_disturb_each_other(project: Project) -> None:
    project.write("value", "changed")
    before = state(project)
    sessions = [
        subprocess.Popen(
            [sys.executable, "-c", _SESSIONS, str(project.folder), str(project.cache)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    errors = [session.communicate()[1] for session in sessions]
    assert errors == [""] * 6
    assert left_in(project) == []
    assert state(project) == before
