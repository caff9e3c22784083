"""Disks that are full, read-only, or fail while perfci measures: reported, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfci.history.store import open_history
from tests.builders.project import Done, Project, rows

pytestmark = pytest.mark.processes

SPOILS_SCRATCH = """\
import os
import shutil
from pathlib import Path

import perfci


@perfci.benchmark
def steady():
    count = Path({count!r})
    with count.open("a") as file:
        file.write("x")
    if count.stat().st_size == 4:
        session = next(
            one for one in Path(os.environ["TMPDIR"]).parents if one.name.startswith("session-")
        )
        shutil.rmtree(session / "caches")
        (session / "caches").write_text("")  # nothing can be made in it any more
    return lambda: sum(range(500))
"""


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A tmpfs of the test's own; skips where this user may not mount one, by sudo either."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"mode=0777,{options}", "tmpfs", str(folder)]
    for sudo in ([], ["sudo", "--non-interactive"]):
        try:
            done = subprocess.run([*sudo, *mount], capture_output=True, check=False)
        except FileNotFoundError:
            continue
        if done.returncode == 0:
            break
    else:
        pytest.skip("this user may not mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run([*sudo, "umount", "--lazy", str(folder)], check=True)


def make_read_only(mount: Path) -> None:
    """Turn what ``mounted`` gave, by the same right."""
    turn = ["mount", "-o", "remount,ro", str(mount)]
    as_root = ["sudo", "--non-interactive", *turn] if os.geteuid() else turn
    subprocess.run(as_root, check=True)


def refused(done: Done, *texts: str) -> None:
    """Assert that perfci ended because of the disk, and said each text."""
    assert done.without_traceback().code == 4, done.text
    for text in texts:
        assert text in done.err, done.text


@pytest.fixture
def small(project: Project) -> Project:
    project.counting(1000)
    project.commit("base")
    return project


def test_a_full_disk(small: Project, tmp_path: Path) -> None:
    with mounted(tmp_path / "tiny", "size=64k") as tiny:
        (tiny / "filler").write_bytes(b"x" * 60_000)
        done = small.perfci(
            "compare", "HEAD", "HEAD", "--same", PERFCI_CACHE_DIR=str(tiny / "cache")
        )
    refused(done, "PERFCI_CACHE_DIR")


def test_a_history_that_can_only_be_read_is_said_before_anything_is_measured(
    small: Project, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    small.write(
        "benchmarks/bench_marks.py",
        "from pathlib import Path\nimport perfci\n\n@perfci.benchmark\ndef marks():\n"
        f"    Path({str(begun)!r}).touch()\n    return lambda: None\n",
    )
    small.commit("marks")
    with mounted(tmp_path / "fixed", "size=4m") as fixed:
        with open_history(str(fixed / "h.sqlite")):
            pass
        make_read_only(fixed)
        done = small.perfci("run", "HEAD", "--record", "--history", str(fixed / "h.sqlite"))
    refused(done, "h.sqlite")
    assert not begun.exists()


def test_a_read_only_disk(small: Project, tmp_path: Path) -> None:
    with mounted(tmp_path / "fixed", "ro") as fixed:
        done = small.perfci(
            "compare", "HEAD", "HEAD", "--same", PERFCI_CACHE_DIR=str(fixed / "cache")
        )
    refused(done, "PERFCI_CACHE_DIR")


def test_a_report_and_baselines_on_a_read_only_disk_are_refused_before_measuring(
    small: Project, tmp_path: Path
) -> None:
    with mounted(tmp_path / "fixed", "ro") as fixed:
        path = str(fixed / "report.json")
        refused(
            small.perfci("compare", "HEAD", "HEAD", "--same", "--json", path), path, "Read-only"
        )
        (small.folder / "baselines").symlink_to(fixed)
        refused(small.perfci("baseline", "update"), "Read-only", "choose another folder")
    assert not small.cache.exists()


def test_baselines_on_a_disk_that_is_full_when_they_are_stored(
    small: Project, tmp_path: Path
) -> None:
    with mounted(tmp_path / "tiny", "size=64k") as tiny:
        (tiny / "filler").write_bytes(b"x" * 60_000)  # a page is free: enough for the first look
        (small.folder / "baselines").symlink_to(tiny)
        done = small.perfci("baseline", "update", "-k", "steady", "--rounds", "2")
        refused(done, "No space left", "Make room", "what was stored before is intact")
        assert not list(tiny.glob("*/steady*"))
    assert small.cache.exists()


def test_a_report_on_a_full_disk_is_shown_on_the_terminal(small: Project) -> None:
    command = ("run", "HEAD", "-k", "steady", "--rounds", "2", "--json", "/dev/full")
    done = small.perfci(*command)
    refused(done, "/dev/full", "No space left", "shown on the terminal")
    assert "latency_p50" in done.out


def test_a_log_on_a_full_disk_costs_no_session(small: Project, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "session.log").symlink_to("/dev/full")
    command = ("run", "HEAD", "-k", "steady", "--rounds", "2", "--log-dir", str(logs))
    report = small.report(*command, code=0)
    assert rows(report, "steady")["latency_p50"]["head"]["workers"] == 2
    (said,) = (note for note in report["notes"] if "log is incomplete" in note)
    assert os.strerror(28) in said


def test_a_disk_that_fails_while_measuring_leaves_a_report_of_what_was_measured(
    project: Project, tmp_path: Path
) -> None:
    benchmark = SPOILS_SCRATCH.format(count=str(tmp_path / "count"))
    project.commit("base", **{"benchmarks/bench_one.py": benchmark})
    report = project.report("compare", "HEAD", "HEAD", "--same", code=3)
    assert report["interrupted"] is True
    assert rows(report, "steady")["latency_p50"]["base"]["workers"] == 2
    assert any("The session ended early" in note for note in report["notes"])
    assert report["verdict"]["status"] == "inconclusive"
