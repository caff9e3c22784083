"""Which cgroup perfci may divide, and which one a worker enters, by a folder like the kernel's.

What the kernel itself does with them is in ``test_real_cgroup``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfci.machine import cgroup as machine
from perfci.metrics.observed import cgroup as observed

SESSION = f"{observed.PREFIX}{'0' * 16}"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """/sys/fs/cgroup, of which this process's is ``delegated``."""
    found = tmp_path / "cgroup"
    monkeypatch.setattr(observed, "ROOT", found)
    monkeypatch.setattr(machine, "ROOT", found)
    made(found / "delegated")
    be_in("/delegated", tmp_path, monkeypatch)
    return found


def made(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, text in {
        "cgroup.controllers": "cpu memory pids",
        "cgroup.subtree_control": "",
        "cgroup.procs": f"{os.getpid()}\n",
        "cgroup.type": "domain",
        "memory.peak": "0\n",
    }.items():
        (folder / name).write_text(text)


def be_in(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "self-cgroup"
    said.write_text(f"4:memory:/other\n0::{path}\n")
    monkeypatch.setattr(observed, "_PROC", said)


def mark(monkeypatch: pytest.MonkeyPatch, name: str = "user.delegate") -> None:
    def getxattr(_: Path, asked: str) -> bytes:
        if asked != name:
            raise OSError
        return b"1"

    monkeypatch.setattr(os, "getxattr", getxattr)


def test_the_own_cgroup_is_that_of_the_unified_hierarchy(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert observed.own_cgroup() == root / "delegated"
    be_in("/", tmp_path, monkeypatch)
    assert observed.own_cgroup() == root
    (tmp_path / "self-cgroup").write_text("4:memory:/other\n1:name=systemd:/\n")
    assert observed.own_cgroup() is None
    monkeypatch.setattr(observed, "_PROC", tmp_path / "none")
    assert observed.own_cgroup() is None


def test_what_systemd_marked_is_divided_and_what_it_keeps_is_not(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert machine.why_undivided(root / "delegated") == "its cgroup is not delegated to it"
    for name in ("user.delegate", "trusted.delegate"):
        mark(monkeypatch, name)
        assert not machine.why_undivided(root / "delegated")


def test_the_root_of_a_namespace_is_divided(root: Path) -> None:
    made(root / "namespace")
    for file in (root / "namespace").iterdir():
        file.rename(root / file.name)
    assert not machine.why_undivided(root)


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("cgroup.controllers", "cpu pids", "its cgroup has no memory controller"),
        ("cgroup.procs", "{own}\n1\n", "its cgroup has other processes, too"),
        ("cgroup.procs", "{own}\n0\n", "its cgroup has other processes, too"),
    ],
)
def test_another_cgroup_is_left_alone(
    root: Path, file: str, text: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark(monkeypatch)
    (root / "delegated" / file).write_text(text.format(own=os.getpid()))
    assert machine.why_undivided(root / "delegated") == why
    before = sorted((root / "delegated").iterdir())
    assert machine.divide() == machine.Division()
    assert sorted((root / "delegated").iterdir()) == before


def test_the_machines_own_cgroup_and_an_older_kernels_are_not_divided(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark(monkeypatch)
    peak = root / "delegated" / "memory.peak"
    peak.chmod(0o444)
    assert "Linux 6.12" in machine.why_undivided(root / "delegated")
    peak.unlink()
    assert "Linux 6.12" in machine.why_undivided(root / "delegated")
    (root / "delegated" / "cgroup.type").unlink()
    assert "the machine's own" in machine.why_undivided(root / "delegated")


def test_without_cgroup_v2_there_is_nothing_to_divide(root: Path) -> None:
    assert machine.why_undivided(None) == "there is no cgroup v2"
    assert machine.why_undivided(root) == "there is no cgroup v2"


def test_the_empty_cgroups_of_killed_sessions_are_removed_and_no_others(root: Path) -> None:
    names = (SESSION, f"{SESSION}-{'1' * 16}", f"{observed.PREFIX}living", "another")
    for name in names:
        (root / "delegated" / name).mkdir()
    (root / "delegated" / names[2] / "cgroup.procs").write_text("7\n")  # rmdir refuses it, too
    machine.remove_left(root / "delegated")
    left = {one.name for one in (root / "delegated").iterdir() if one.is_dir()}
    assert left == {names[2], "another"}


def test_a_worker_enters_a_cgroup_beside_its_sessions(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(root / "delegated" / SESSION)
    be_in(f"/delegated/{SESSION}", tmp_path, monkeypatch)
    assert machine.cgroup_of("abc") == root / "delegated" / f"{SESSION}-abc"
    assert observed.Charged.entered("") is None
    assert observed.Charged.entered("abc") is None  # it has no memory.peak
    assert not (root / "delegated" / f"{SESSION}-abc").exists()


def test_a_worker_enters_none_where_its_session_divided_none(root: Path) -> None:
    assert observed.Charged.entered("abc") is None
    assert [one.name for one in root.iterdir()] == ["delegated"]
