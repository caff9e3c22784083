"""A delegated cgroup v2, as systemd or root gives one: the kernel counts what workers start."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfci.metrics.observed.processes import ROOT
from tests.builders.project import Project, rows

HIDDEN = """\
import ctypes
import sys
import perfci

@perfci.benchmark
def hidden():
    line = f'{sys.executable} -S -c "x = b\\'1\\' * (150 << 20)"'.encode()
    return lambda: ctypes.PyDLL(None).system(line)  # which keeps the interpreter's lock
"""
MIB = 1 << 20
SAME = ("compare", "HEAD", "HEAD", "--same", "--all")
ENTER = 'echo 0 > "$0/cgroup.procs" && exec "$@"'
SUBTREE = ROOT / "cgroup.subtree_control"


def why_none() -> str:
    """Return why a test can't have a delegated cgroup, or nothing."""
    if not (ROOT / "cgroup.controllers").exists():
        return "no cgroup v2"
    if "memory" not in (ROOT / "cgroup.controllers").read_text().split():
        return "no memory controller"
    return "" if os.access(SUBTREE, os.W_OK) else "cgroups can be made by root alone"


pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_none()), reason=why_none()),
]


@pytest.fixture
def delegated() -> Iterator[Path]:
    """A cgroup that is marked as systemd marks one, and removed with all that is in it."""
    if "memory" not in SUBTREE.read_text().split():
        SUBTREE.write_text("+memory")
    folder = ROOT / f"test-{secrets.token_hex(4)}"
    folder.mkdir()
    os.setxattr(folder, "trusted.delegate", b"1")
    yield folder
    (folder / "cgroup.kill").write_text("1")
    deadline = time.monotonic() + 10
    while folder.exists() and time.monotonic() < deadline:
        for one in (*folder.glob("*/"), folder):
            try:
                one.rmdir()
            except OSError:
                time.sleep(0.01)


@pytest.fixture
def hidden(project: Project) -> Project:
    project.write("benchmarks/bench_one.py", HIDDEN)
    project.commit("base")
    return project


def inside(folder: Path, project: Project, *arguments: str) -> subprocess.Popen[str]:
    """Start perfci in the cgroup ``folder``."""
    return subprocess.Popen(
        ["sh", "-c", ENTER, str(folder), *arguments],
        cwd=project.folder,
        env=project.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def perfci(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "perfci", *arguments)


def made_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.glob("*/"))


def test_what_sampling_missed_is_charged_and_no_cgroup_is_left(
    delegated: Path, hidden: Project, tmp_path: Path
) -> None:
    out = tmp_path / "report.json"
    asked = perfci(*SAME, "--rounds", "2", "--json", str(out))
    said = inside(delegated, hidden, *asked).communicate(timeout=240)[0]
    found = rows(json.loads(out.read_text()), "hidden")
    assert found["host_memory_over_setup"]["head"]["center"] < 50 * MIB, said
    charged = found["cgroup_memory_over_setup"]["head"]["center"]
    assert 150 * MIB < charged < 180 * MIB, said
    assert made_in(delegated) == []
    assert "memory" not in (delegated / "cgroup.subtree_control").read_text()


def test_a_killed_session_leaves_none(delegated: Path, hidden: Project) -> None:
    asked = perfci(*SAME, "--rounds", "50")
    with inside(delegated, hidden, *asked) as process:
        deadline = time.monotonic() + 60
        while len(made_in(delegated)) < 2:
            assert time.monotonic() < deadline, "no worker had a cgroup"
            time.sleep(0.01)
        process.kill()
    deadline = time.monotonic() + 20
    while made_in(delegated) or (delegated / "cgroup.procs").read_text():
        assert time.monotonic() < deadline, made_in(delegated)
        time.sleep(0.05)


def test_beside_a_shell_nothing_is_divided(delegated: Path, hidden: Project) -> None:
    line = f"{' '.join(perfci('doctor'))}; true"
    said = inside(delegated, hidden, shutil.which("sh") or "sh", "-c", line).communicate(60)[0]
    assert "its cgroup has other processes, too" in said
