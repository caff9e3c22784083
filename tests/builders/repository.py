"""Builders of repositories in the states that users have them in, and what must not change."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfci.measure.checkout.git import Repository, open_repository
from perfci.measure.checkout.side_folders import SideFolders
from tests.builders.project import Project


def three_commits(folder: Path) -> Project:
    """``main`` with the file ``value`` at one, two, three."""
    project = Project(folder)
    for value in ("one", "two", "three"):
        project.commit(f"Say {value}", value=value)
    return project


def opened(project: Project) -> Repository:
    return open_repository(project.folder)


def worktrees_of(project: Project) -> SideFolders:
    return SideFolders(project.cache, opened(project))


def state(project: Project) -> dict[str, str]:
    """All of a user's that perfci must leave bit for bit as it was."""
    index = (project.folder / ".git" / "index").read_bytes()
    files = {
        path.relative_to(project.folder): path.read_bytes()
        for path in sorted(project.folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }
    return {
        "index": hashlib.sha256(index).hexdigest(),
        "status": project.git("--no-optional-locks", "status", "--porcelain=v2", "--branch"),
        "stashes": project.git("stash", "list"),
        "head": (project.folder / ".git" / "HEAD").read_text(),
        "refs": project.git("for-each-ref"),
        "reflog": (project.folder / ".git" / "logs" / "HEAD").read_text(),
        "config": (project.folder / ".git" / "config").read_text(),
        "worktrees": project.git("worktree", "list", "--porcelain"),
        "files": repr(files),
    }


_HOLDER = """\
import os, sys, time
from pathlib import Path
from perfci.measure.checkout.build import BuildRecipe
from perfci.measure.checkout.git import open_repository
from perfci.measure.checkout.side_folders import SideFolders

root, cache, build = sys.argv[1:]
repository = open_repository(Path(root))
commands = (build,) if build else ()
recipe = BuildRecipe(commands, environment={"PATH": os.environ["PATH"]})
with SideFolders(Path(cache), repository).side(repository.resolve("HEAD"), recipe) as path:
    print(path, flush=True)
    time.sleep(600)
"""


@contextmanager
def holder(project: Project, build: str = "") -> Iterator[subprocess.Popen[str]]:
    """Another perfci that has a side of ``project`` in use (or builds one) until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(project.folder), str(project.cache), build],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def path_from(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """A disk of its own at ``folder``; skips where this user may not mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mount", *options, str(folder)], check=False, capture_output=True)
    if done.returncode != 0:
        pytest.skip("mounting needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
