"""A worktree's sources at the end of a session, beside what they were."""

from __future__ import annotations

import os

import pytest

from perfci.measure.checkout.worktrees import uncommitted, written_since
from tests.builders.project import Project


@pytest.fixture
def checkout(project: Project) -> Project:
    project.commit("base", **{"lib.py": "x = 1\n", "other.py": "x = 1\n", ".gitignore": "gen/\n"})
    return project


def test_what_is_changed_removed_or_importable_and_new_is_written(checkout: Project) -> None:
    before = uncommitted(checkout.folder)
    assert before == {}
    kept = (checkout.folder / "lib.py").stat()
    checkout.write("lib.py", "x = 2\n")
    os.utime(checkout.folder / "lib.py", ns=(kept.st_atime_ns, kept.st_mtime_ns))
    (checkout.folder / "other.py").unlink()
    checkout.write("new.py", "")
    checkout.write("results.json", "")
    for built in ("__pycache__/lib.pyc", "gen/a.py", ".perfci-build/a.py", "a.egg-info/a.py"):
        checkout.write(built, "")
    after = uncommitted(checkout.folder)
    assert written_since(before, after) == ("lib.py", "new.py", "other.py")


def test_what_a_build_had_changed_before_counts_where_it_changes_again(checkout: Project) -> None:
    checkout.write("lib.py", "x = 2\n")
    checkout.write("other.py", "x = 2\n")
    before = uncommitted(checkout.folder)
    assert written_since(before, uncommitted(checkout.folder)) == ()
    checkout.write("lib.py", "x = 3\n")
    checkout.write("other.py", "x = 1\n")
    assert written_since(before, uncommitted(checkout.folder)) == ("lib.py", "other.py")
