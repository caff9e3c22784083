"""Forked workers are as good as fresh ones, and replaced by fresh ones where a fork fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.project import Project, rows

pytestmark = pytest.mark.processes

TELLS_ITS_PARENTS = """\
import gc, os, time
import perfci

time.sleep(0.1)  # stands for the import of torch
IMPORTED_BY = os.getpid()

def forked():
    return float(os.getpid() != IMPORTED_BY)

@perfci.benchmark
def NAME_forked():
    frozen = float(gc.get_freeze_count())
    kept = perfci.metric("frozen", lambda: frozen, exact=True)
    return (lambda: sum(range(300))), perfci.metric("forked", forked, exact=True), kept

@perfci.benchmark
def NAME_parent():
    print(os.getppid(), file=open(PARENTS, "a"))
    parent = perfci.metric("parent", lambda: float(os.getppid()), exact=True)
    return (lambda: sum(range(300))), parent
"""
APART = TELLS_ITS_PARENTS.replace("time.sleep(0.1)", "os.environ['SET'] = '1'; time.sleep(0.1)")
"""It sets a variable before it imports: no fork server could have done so for it."""

LEAVES_A_THREAD = APART.replace(
    "IMPORTED_BY =",
    "import threading\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    "IMPORTED_BY =",
)

KILLS_ITS_PARENT = """\
import os, signal
import perfci

@perfci.benchmark
def deadly():
    if os.getppid() != 1:
        os.kill(os.getppid(), signal.SIGKILL)
    return lambda: sum(range(300))

@perfci.benchmark
def steady():
    return lambda: sum(range(500))
"""


FILES = {
    "shared": TELLS_ITS_PARENTS,
    "apart": APART,
    "threaded": LEAVES_A_THREAD,
    "deadly": KILLS_ITS_PARENT,
}


def written(project: Project, name: str) -> None:
    """Write the file of that name, whose benchmarks begin with it."""
    source = FILES[name].replace("NAME", name)
    source = source.replace("PARENTS", repr(f"{project.folder}-parents-{name}"))
    project.write(f"benchmarks/bench_{name}.py", source)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    return Compared(tmp_path_factory.mktemp("servers") / "project")


class Compared:
    """One session of all files, and its report."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder)
        for name in FILES:
            written(self.project, name)
        self.project.commit("benchmarks")
        options = ("--allow-same-commit", "--rounds", "2", "--budget", "280s")
        self.report = self.project.report("compare", "HEAD", "HEAD", *options)

    def row(self, case: str, metric: str = "latency_p50") -> dict[str, Any]:
        found: dict[str, Any] = rows(self.report, case)[metric]
        return found

    def assert_cold_start_counts_all_imports(self, file: str) -> None:
        for case in (f"{file}_forked", f"{file}_parent"):
            imports = self.row(case, "import_time")["head"]["center"]
            assert 0.1 < imports < self.row(case, "cold_start")["head"]["center"]

    def notes_of(self, name: str) -> list[str]:
        return [one for one in self.report["notes"] if f"bench_{name}.py" in one]


def test_workers_of_both_sides_have_one_fork_server(
    compared: Compared,
) -> None:
    compared.assert_cold_start_counts_all_imports("shared")
    parent = compared.row("shared_parent", "parent")
    assert parent["base"]["center"] == parent["head"]["center"]
    parents = Path(f"{compared.project.folder}-parents-shared").read_text().split()
    assert len(set(parents)) == 1
    forked = compared.row("shared_forked", "forked")
    assert forked["head"]["center"] == 0.0, "it imported a side's own code"
    frozen = compared.row("shared_forked", "frozen")
    assert frozen["head"]["center"] == 0.0, "a collection would be cheaper than a user's"
    assert compared.notes_of("shared") == []


def test_a_side_that_sets_a_variable_as_it_is_imported_has_servers_of_its_own(
    compared: Compared,
) -> None:
    compared.assert_cold_start_counts_all_imports("apart")
    assert compared.row("apart_forked", "forked")["head"]["center"] == 1.0
    parent = compared.row("apart_parent", "parent")
    assert parent["base"]["center"] != parent["head"]["center"]
    why = "base sets the variable SET as it is imported"
    assert any(why in note for note in compared.notes_of("apart"))


def test_imports_that_leave_a_thread_mean_fresh_workers_and_a_note(compared: Compared) -> None:
    assert compared.row("threaded_forked", "forked")["head"]["center"] == 0.0
    assert any("left threads running" in note for note in compared.notes_of("threaded"))


def test_a_benchmark_that_kills_its_parent_harms_no_other(compared: Compared) -> None:
    assert {one["case"] for one in compared.report["failures"]} <= {"deadly"}
    for case in ("steady", "shared_forked", "apart_forked", "threaded_forked"):
        assert compared.row(case)["base"]["workers"] == 2
    assert not list(compared.project.cache.glob("session-*"))


def test_the_side_that_killed_the_fork_server_is_blamed_and_not_the_other(project: Project) -> None:
    project.write("lib.py", "")
    source = KILLS_ITS_PARENT.replace("import perfci\n", "import lib\nimport perfci\n", 1)
    source = source.replace("if os.getppid() != 1:", "if hasattr(lib, 'kills'):")
    project.write("benchmarks/bench_one.py", source)
    base = project.commit("base")
    project.write("lib.py", "kills = True\n")
    project.commit("head")
    report = project.report("compare", base, "HEAD", "--rounds", "2", "-k", "deadly")
    assert {one["side"] for one in report["failures"]} == {"head"}
    assert {one["kind"] for one in report["failures"]} == {"killed_parent"}
