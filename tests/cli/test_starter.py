"""Forked workers are as good as fresh ones, and replaced by fresh ones where a fork fails."""

from __future__ import annotations

import pytest

from tests.builders.project import QUICK, Project, rows

pytestmark = pytest.mark.processes

TELLS_ITS_PARENTS = """\
import os, time
import perfci

time.sleep(0.1)  # stands for the import of torch
IMPORTED_BY = os.getpid()

def forked():
    return float(os.getpid() != IMPORTED_BY)

@perfci.benchmark
def one():
    return (lambda: sum(range(300))), perfci.metric("forked", forked, exact=True)

@perfci.benchmark
def two():
    parent = perfci.metric("parent", lambda: float(os.getppid()), exact=True)
    return (lambda: sum(range(300))), parent
"""
APART = TELLS_ITS_PARENTS.replace("time.sleep(0.1)", "os.environ['SET'] = '1'; time.sleep(0.1)")
"""It sets a variable before it imports: no ancestor could have done so for it."""

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


def measured(project: Project, source: str, *options: str) -> dict:
    project.write("benchmarks/bench_one.py", source)
    project.commit("benchmarks")
    return project.report("compare", "HEAD", "HEAD", "--same", *options)


def assert_cold_start_counts_all_imports(report: dict) -> None:
    for case in ("one", "two"):
        cold, imports = (rows(report, case)[name]["head"] for name in ("cold_start", "import_time"))
        assert imports["center"] > 0.1
        assert imports["center"] < cold["center"] < imports["center"] + 1.0


def test_workers_of_both_sides_have_one_ancestor_and_several_pairs_have_it(
    project: Project,
) -> None:
    report = measured(project, TELLS_ITS_PARENTS)
    assert_cold_start_counts_all_imports(report)
    parent = rows(report, "two")["parent"]
    for end in ("center", "lo", "hi", "workers"):
        assert parent["base"][end] == parent["head"][end]
    assert parent["head"]["lo"] < parent["head"]["hi"], "no second ancestor"
    assert rows(report, "one")["forked"]["head"]["center"] == 0.0, "it imported a side's own code"
    assert "by itself" not in str(report["notes"])


def test_a_side_that_sets_a_variable_as_it_is_imported_has_starters_of_its_own(
    project: Project,
) -> None:
    report = measured(project, APART)
    assert_cold_start_counts_all_imports(report)
    assert rows(report, "one")["forked"]["head"]["center"] == 1.0
    parent = rows(report, "two")["parent"]
    assert parent["base"]["center"] != parent["head"]["center"]
    assert any("base sets the variable SET as it is imported" in one for one in report["notes"])


SETS_BY_ORDER = """\
import sys
EARLY = "torch" in sys.modules
import os
import torch
import perfci

if EARLY:
    torch.set_default_dtype(torch.float64)

@perfci.benchmark
def one():
    early = perfci.metric("early", lambda: float(EARLY), exact=True)
    return (lambda: sum(range(300))), early
"""


@pytest.mark.torch
def test_torch_that_is_set_otherwise_than_in_a_fresh_process_is_seen(project: Project) -> None:
    report = measured(project, SETS_BY_ORDER, "--rounds", "2")
    assert rows(report, "one")["early"]["head"]["center"] == 0.0
    assert report["failures"] == []
    said = "torch's default dtype is torch.float64 after the imports, and torch.float32 in a fresh"
    assert any(said in note for note in report["notes"])


def test_the_side_that_killed_the_ancestor_is_blamed_and_not_the_other(project: Project) -> None:
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


def test_a_library_that_a_side_shadows_is_imported_by_each_side(project: Project) -> None:
    project.write("colorsys.py", "def rgb_to_hsv(*_): return 1.0, 1.0, 1.0\n")
    source = TELLS_ITS_PARENTS.replace("import os, time", "import os, time, colorsys").replace(
        "lambda: float(os.getppid())", "lambda: colorsys.rgb_to_hsv(0.5, 0.0, 0.0)[2]"
    )
    project.write("benchmarks/bench_one.py", source)
    base = project.commit("with its own")
    (project.folder / "colorsys.py").unlink()
    project.commit("with Python's")
    report = project.report("compare", base, "HEAD", "--rounds", "2", "-k", "two")
    found = rows(report, "two")["parent"]
    assert (found["base"]["center"], found["head"]["center"]) == (1.0, 0.5)


def test_fork_can_be_switched_off(project: Project) -> None:
    with (project.folder / "pyproject.toml").open("a") as file:
        file.write("[tool.perfci.quiet]\nfork = false\n")
    report = measured(project, TELLS_ITS_PARENTS, "-k", "two")
    parent = rows(report, "two")["parent"]["head"]
    assert parent["lo"] == parent["hi"]
    assert report["environment"]["facts"]["quiet_fork"] == "false"


def test_imports_that_leave_a_thread_mean_fresh_workers_and_a_note(project: Project) -> None:
    report = measured(project, LEAVES_A_THREAD, "-k", "one")
    assert rows(report, "one")["forked"]["head"]["center"] == 0.0
    assert any("left threads running" in note for note in report["notes"])


def test_a_benchmark_that_kills_its_parent_harms_no_other(project: Project) -> None:
    logs = project.folder.parent / "logs"
    report = measured(project, KILLS_ITS_PARENT, "--log-dir", str(logs), "-k", "steady or deadly")
    assert rows(report, "steady")["latency_p50"]["base"]["workers"] >= 5
    assert not [failure for failure in report["failures"] if failure["case"] == "steady"]
    assert not list(project.cache.glob("session-*"))


WAVERS = """\
import os, time
import perfci

@perfci.benchmark
def wavers():
    with open({path!r}, "a+") as file:
        print(sorted(os.sched_getaffinity(0)), file=file, flush=True)
        file.seek(0)
        started = len(file.readlines())
    seconds = 0.00053 if started % 2 else 0.0005  # who starts first is slow, and that alternates
    return lambda: time.sleep(seconds)
"""


def test_rounds_beyond_the_least_start_both_sides_at_once_and_tell_no_cold_start(
    project: Project,
) -> None:
    cores = project.folder.parent / "cores"
    project.write(
        "pyproject.toml",
        QUICK.replace("max_rounds = 9", "max_rounds = 14")
        + '[tool.perfci.metrics.cold_start]\ngate = "warn"\n',
    )
    source = WAVERS.format(path=str(cores))
    report = measured(
        project, source.replace("import perfci\n", "import perfci\nos.environ['SET'] = '1'\n", 1)
    )
    found = rows(report, "wavers")
    rounds = found["latency_p50"]["base"]["workers"]
    assert rounds > 5
    assert found["cold_start"]["base"]["workers"] == found["cold_start"]["head"]["workers"] == 5
    lines = cores.read_text().splitlines()
    assert len(lines) >= 2 * rounds  # one round of these may count as disturbed
    assert len(set(lines)) == 1, "one side was measured on other cores"
