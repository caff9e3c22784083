"""Benchmarks that misbehave: each is a failure with a reason, and the others continue."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.builders.project import NOISE_PASSES, Project, rows
from tests.builders.simulated import Simulated

pytestmark = pytest.mark.processes

FILES = Path(__file__).parent.parent / "data" / "misbehaving"

FAILURES = [
    ("crashes", "SIGSEGV", "setup", "crashed with SIGSEGV"),
    ("hangs", "timeout", "setup", "no answer within 2 s"),
    ("killed", "SIGKILL", "setup", "the kernel counts no kill for memory"),
    ("lingers", "SIGSEGV", "setup", "crashed with SIGSEGV"),
    ("killed_in_real_time", "SIGRTMIN+6", "setup", "crashed with SIGRTMIN+6"),
    ("takes_all_memory", "MemoryError", "setup", "bench_takes_all_memory.py:8"),
    ("exits", "SystemExit", "setup", "bench_exits.py:7"),
    ("leaves_a_child", "left_processes", "done", "left 1 process"),
    ("closes_descriptors", "closed_pipe", "setup", "file descriptors"),
    ("returns_nothing", "nothing_returned", "setup", "bench_returns_nothing.py:4"),
    ("returns_a_number", "not_callable", "setup", "42"),
    ("raises_late", "StopIteration", "warmup", "bench_raises_late.py:7"),
]


OTHERS = (
    "speaks_nonsense",
    "exits_on_import",
    "gives_enormous_numbers",
    "prints_without_end",
    "changes_directory",
)
TWO = ("--rounds", "2")
"""Enough where it is asked who fails, and not what got slower."""

SOUND = """\
def prepare():
    pass

call = die = wait = prepare
"""
UNSOUND = """\
import os
import signal
import time

def prepare():
    raise RuntimeError("boom")

call = prepare

def die():
    os.kill(os.getpid(), signal.SIGSEGV)

def wait():
    time.sleep(600)
"""


def with_file(project: Project, name: str) -> Project:
    """Add the misbehaving file to a project that has a well-behaved one."""
    project.counting(1000)
    (project.folder / "benchmarks" / f"bench_{name}.py").write_text(
        (FILES / f"bench_{name}.py").read_text()
    )
    with (project.folder / "pyproject.toml").open("a") as file:
        file.write('memory_limit = "1GiB"\n' if name == "takes_all_memory" else "")
        file.write(NOISE_PASSES)
    project.commit(name)
    return project


class Misbehaving:
    """One session with every misbehaving file that fails alike on both sides, and its report."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder / "project")
        self.logs = folder / "logs"
        self.project.counting(1000)
        for name in (*(name for name, *_ in FAILURES), *OTHERS):
            text = (FILES / f"bench_{name}.py").read_text()
            self.project.write(
                f"benchmarks/bench_{name}.py", text.replace("misbehaving(", f"{name}(")
            )
        with (self.project.folder / "pyproject.toml").open("a") as file:
            file.write('memory_limit = "1GiB"\n')
            file.write(NOISE_PASSES)
        self.project.commit("all of them")
        options = ("--allow-same-commit", *TWO, "--budget", "280s", "--log-dir", str(self.logs))
        # as base does: no head is to blame, and there is no pass
        self.report = self.project.report("compare", "HEAD", "HEAD", *options, code=3)

    def failures(self, case: str) -> dict[str, dict[str, Any]]:
        """Return the failures of a case by side."""
        return {one["side"]: one for one in self.report["failures"] if one["case"] == case}

    def row(self, case: str, metric: str = "latency_p50") -> dict[str, Any]:
        found: dict[str, Any] = rows(self.report, case)[metric]
        return found


@pytest.fixture(scope="module")
def misbehaving(tmp_path_factory: pytest.TempPathFactory) -> Misbehaving:
    return Misbehaving(tmp_path_factory.mktemp("misbehaving"))


@pytest.mark.parametrize(("name", "kind", "stage", "message"), FAILURES)
def test_it_fails_with_a_reason(
    misbehaving: Misbehaving, name: str, kind: str, stage: str, message: str
) -> None:
    failures = misbehaving.failures(name)
    assert set(failures) == {"base", "head"}
    for failure in failures.values():
        assert (failure["kind"], failure["stage"]) == (kind, stage), failure
        assert message in failure["message"]
    assert misbehaving.row(name)["status"] == "failed"


def test_nonsense_on_the_pipe_of_results_fails_its_own_case(misbehaving: Misbehaving) -> None:
    cases = {row["case"] for row in misbehaving.report["results"]}
    nonsense = {case for case in cases if case.startswith("speaks_nonsense[")}
    assert len(nonsense) == 14
    for case in nonsense:
        kinds = {side: one["kind"] for side, one in misbehaving.failures(case).items()}
        assert kinds == {"base": "protocol", "head": "protocol"}, case


def test_sys_exit_on_import_fails_its_file_only(misbehaving: Misbehaving) -> None:
    failures = misbehaving.failures("benchmarks/bench_exits_on_import.py")
    assert {failure["kind"] for failure in failures.values()} == {"SystemExit"}


def test_the_others_go_on(misbehaving: Misbehaving) -> None:
    failed = {one["case"].partition("[")[0] for one in misbehaving.report["failures"]}
    file = "benchmarks/bench_exits_on_import.py"
    assert failed == {*(name for name, *_ in FAILURES), "speaks_nonsense", file}
    for case in ("steady", "counting"):
        row = misbehaving.row(case)
        assert [row[side]["workers"] for side in ("base", "head")] == [2, 2]
        assert row["status"] == "inconclusive"


def test_endless_printing_neither_blocks_nor_fills_the_disk(misbehaving: Misbehaving) -> None:
    assert misbehaving.row("prints_without_end")["base"]["workers"] == 2
    kept = list((misbehaving.logs / "workers").glob("prints_without_end*"))
    assert kept
    assert max(path.stat().st_size for path in kept) < 300_000
    assert re.search("bytes left out", kept[0].read_text())


def test_no_process_is_left_behind(misbehaving: Misbehaving) -> None:
    cache = misbehaving.project.cache
    assert not list(cache.glob("session-*"))
    left = [entry.name for entry in Path("/proc").iterdir() if _works_in(entry, cache)]
    assert not left


def test_what_fails_on_head_only_is_an_error_and_the_others_go_on(project: Project) -> None:
    base = with_file(project, "fails_with_its_library").commit("base", **{"kind.py": SOUND})
    project.commit("head", **{"kind.py": UNSOUND})
    report = project.report("compare", base, "HEAD", "--all", *TWO, code=3)
    failures = {one["case"]: (one["side"], one["stage"], one["kind"]) for one in report["failures"]}
    assert failures == {
        "in_setup": ("head", "setup", "RuntimeError"),
        "in_a_call": ("head", "first_call", "RuntimeError"),
        "by_a_signal": ("head", "setup", "SIGSEGV"),
        "by_hanging": ("head", "setup", "timeout"),
    }
    for case in failures:
        assert rows(report, case)["latency_p50"]["status"] == "failed"
        assert any(one.startswith(f"{case}: head failed") for one in report["verdict"]["reasons"])
    assert report["verdict"]["status"] == "error"
    assert rows(report, "steady")["latency_p50"]["base"]["workers"] == 2


def test_slower_than_the_whole_budget_is_not_measured_and_says_so(project: Project) -> None:
    project.executor = Simulated()  # its clock makes no one wait
    with_file(project, "too_slow")
    report = project.report(
        "compare", "HEAD", "HEAD", "--allow-same-commit", "-k", "slow", "--budget", "4s", code=3
    )
    row = rows(report, "slow")["latency_p50"]
    assert row["status"] == "not_measured"
    assert "budget" in " ".join(row["warnings"])
    assert any("--budget" in note for note in report["notes"])
    assert report["verdict"]["status"] == "error"  # nothing at all was measured


def _works_in(process: Path, folder: Path) -> bool:
    """Whether it was started there, as a benchmark's children are; the folder may be gone."""
    try:
        return str((process / "cwd").readlink()).startswith(str(folder))
    except OSError:  # no process, or it has ended, or is another user's
        return False
