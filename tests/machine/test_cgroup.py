"""Which cgroup perfci may divide, and which one a worker enters, by a folder like the kernel's.

What the kernel itself does with them is in ``test_real_cgroup``.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from perfci.measure.machine import quiet as machine
from perfci.measure.process_cleanup import undivide
from perfci.metrics import Scene
from perfci.metrics.memory import Memory
from perfci.metrics.observed import processes as observed

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
    monkeypatch.setattr(observed, "_OWN_CGROUP", said)


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
    monkeypatch.setattr(observed, "_OWN_CGROUP", tmp_path / "none")
    assert observed.own_cgroup() is None


def test_what_systemd_marked_is_divided_and_what_it_keeps_is_not(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert machine.undivided_reason(root / "delegated") == "its cgroup is not delegated to it"
    for name in ("user.delegate", "trusted.delegate"):
        mark(monkeypatch, name)
        assert not machine.undivided_reason(root / "delegated")


def test_the_root_of_a_namespace_is_divided(root: Path) -> None:
    made(root / "namespace")
    for file in (root / "namespace").iterdir():
        file.rename(root / file.name)
    assert not machine.undivided_reason(root)


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
    assert machine.undivided_reason(root / "delegated") == why
    before = sorted((root / "delegated").iterdir())
    assert machine.divide() == machine.CgroupDivision()
    assert sorted((root / "delegated").iterdir()) == before


def test_the_machines_own_cgroup_and_an_older_kernels_are_not_divided(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark(monkeypatch)
    peak = root / "delegated" / "memory.peak"
    peak.chmod(0o444)
    assert "Linux 6.12" in machine.undivided_reason(root / "delegated")
    peak.unlink()
    assert "Linux 6.12" in machine.undivided_reason(root / "delegated")
    (root / "delegated" / "cgroup.type").unlink()
    assert "the machine's own" in machine.undivided_reason(root / "delegated")


def test_without_cgroup_v2_there_is_nothing_to_divide(root: Path) -> None:
    assert machine.undivided_reason(None) == "there is no cgroup v2"
    assert machine.undivided_reason(root) == "there is no cgroup v2"


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


@pytest.fixture
def like_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cgroup's own files keep it from being removed as little as they do in the kernel's."""
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)


@pytest.mark.usefixtures("like_the_kernels")
@pytest.mark.parametrize("enabled", [True, False])
def test_what_is_divided_is_as_it_was_in_the_end(
    root: Path, *, enabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark(monkeypatch)
    here = root / "delegated"
    subtree = here / "cgroup.subtree_control"
    subtree.write_text("" if enabled else "cpu memory")
    divided = machine.divide()
    leaf = Path(divided.leaf)
    assert (leaf.parent, divided.enabled) == (here, enabled)
    assert (leaf / "cgroup.procs").read_text() == str(os.getpid())
    assert subtree.read_text() == ("+memory" if enabled else "cpu memory")
    (here / f"{leaf.name}-worker").mkdir()
    (here / SESSION).mkdir()
    (here / "cgroup.procs").write_text("")
    undivide(leaf, "-memory" if divided.enabled else "")
    assert [one.name for one in here.iterdir() if one.is_dir()] == [SESSION]
    assert (here / "cgroup.procs").read_text() == str(os.getpid())
    assert subtree.read_text() == ("-memory" if enabled else "cpu memory")


@pytest.mark.usefixtures("like_the_kernels")
def test_where_the_cgroup_above_refuses_its_processes_the_session_stays_in_its_own(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark(monkeypatch)
    leaf = Path(machine.divide().leaf)
    (root / "delegated" / "cgroup.subtree_control").unlink()
    (root / "delegated" / "cgroup.subtree_control").mkdir()  # not even root can write that
    undivide(leaf, "-memory")
    assert (leaf / "cgroup.procs").exists()


@pytest.mark.parametrize("when", ["before set-up is done", "after a call"])
@pytest.mark.usefixtures("like_the_kernels")
def test_a_cgroup_that_was_taken_back_is_said_and_fails_nothing(
    root: Path, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = root / "delegated" / f"{SESSION}-abc"
    made(own)
    (own / "memory.current").write_text("4096\n")
    monkeypatch.setattr(observed, "cgroup_of", lambda _: own)
    monkeypatch.setattr(Path, "mkdir", lambda _: None)
    monkeypatch.setenv("PERFCI_WORKER", "abc")
    scene = Scene(order=None, collect=lambda: None)
    memory = Memory(scene)
    memory.before_setup()
    if when == "before set-up is done":
        shutil.rmtree(own)
    memory.set_up()
    memory.warm()

    def call() -> None:
        os.system("true")
        shutil.rmtree(own, ignore_errors=True)

    call()
    scene.once = call
    found = memory.after_bursts()
    assert "can't be read any more: No such file" in found.missing["cgroup_memory_over_setup"]
    assert found.values["peak_host_memory"] > 0
