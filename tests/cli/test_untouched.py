"""A case that runs no changed file takes one round. One that may run one takes all."""

from __future__ import annotations

import pytest

from tests.builders.project import NOISE_PASSES, QUICK, Project, rows

BENCHMARK = """\
from pathlib import Path
import perfci
from lib import work

@perfci.benchmark
def counting():
    return work

@perfci.benchmark
def reading():
    text = Path("notes.md").read_text()
    return lambda: len(text)
"""


@pytest.fixture
def settled(project: Project) -> Project:
    for path, text in {
        "pyproject.toml": QUICK + NOISE_PASSES,
        "benchmarks/bench_one.py": BENCHMARK,
        "lib.py": "def work():\n    return sum(range(1000))\n",
        "unused.py": "x = 1\n",
        "notes.md": "one\n",
        "weights.bin": "1",
    }.items():
        project.write(path, text)
    project.commit("base")
    return project


def statuses(project: Project, *arguments: str) -> dict[str, str]:
    """Return for each case ``untouched``, or ``measured`` if it had all of its rounds."""
    report = project.report("compare", "HEAD~1", "HEAD", *arguments)
    of = {case: rows(report, case)["latency_p50"] for case in ("counting", "reading")}
    for row in of.values():
        one = row["status"] == "untouched"
        assert row["head"]["workers"] == 1 if one else row["head"]["workers"] >= 5
        assert not one or row["ratio"] is None
    return {case: row["status"] if row["ratio"] is None else "measured" for case, row in of.items()}


UNTOUCHED = {"counting": "untouched", "reading": "untouched"}
MEASURED = {"counting": "measured", "reading": "measured"}


def test_what_no_case_uses_costs_one_round(settled: Project) -> None:
    settled.commit("other", **{"unused.py": "x = 2\n", "README.md": "new\n"})
    assert statuses(settled) == UNTOUCHED


def test_a_changed_file_that_is_neither_python_nor_prose_is_used_by_every_case(
    settled: Project,
) -> None:
    settled.commit("other", **{"unused.py": "x = 2\n", "weights.bin": "2"})
    assert statuses(settled) == MEASURED


def test_a_change_that_no_case_uses_is_said_first_and_no_pass_under_strict(
    settled: Project,
) -> None:
    settled.commit("other", **{"unused.py": "x = 2\n", "README.md": "new\n"})
    report = settled.report("compare", "HEAD~1", "HEAD", code=0)
    (finding,) = report["verdict"]["findings"]
    assert finding["code"] == "nothing-exercised"
    assert finding["arguments"] == {"names": "unused.py", "more": 0}
    done = settled.perfci("compare", "HEAD~1", "HEAD", "--strict")
    assert done.code == 3
    assert "inconclusive — no case used the changed files" in done.text


def test_of_prose_and_tests_nothing_is_measured_but_with_all(settled: Project) -> None:
    tests = {"tests/test_lib.py": "import lib\n", "test_more.py": "x = 1\n"}
    settled.commit("prose", **{"README.md": "new\n", "docs/conf.py": "x = 1\n", **tests})
    report = settled.report("compare", "HEAD~1", "HEAD", "--strict", code=0)
    assert report["verdict"] == {"status": "pass", "reasons": [], "findings": []}
    assert [(row["status"], row["head"]) for row in report["results"]] == [("untouched", None)] * 2
    done = settled.perfci("compare", "HEAD~1", "HEAD", "--markdown", "comment.md")
    assert "pass — nothing to measure in 2 cases" in done.text
    assert "Only prose and tests changed" in (settled.folder / "comment.md").read_text()
    assert statuses(settled, "--all") == MEASURED


@pytest.mark.parametrize(
    "changed",
    [
        {"benchmarks/test_helper.py": "x = 1\n"},
        {"tests/conftest.py": "x = 1\n"},
        {"tests/data.json": "1"},
        {"README.md": "new\n", "unused.py": "x = 2\n"},
    ],
)
def test_what_a_benchmark_may_need_is_measured(settled: Project, changed: dict[str, str]) -> None:
    settled.commit("other", **changed)
    report = settled.report("compare", "HEAD~1", "HEAD")
    assert all(row["head"] for row in report["results"])


def test_a_test_that_a_benchmark_imports_is_measured(settled: Project) -> None:
    uses = {"lib.py": "from helper_test import work\n"}
    settled.commit("uses", **uses, **{"helper_test.py": "def work():\n    return 1\n"})
    settled.commit("helper", **{"helper_test.py": "def work():\n    return 2\n"})
    report = settled.report("compare", "HEAD~1", "HEAD")
    assert all(row["head"] for row in report["results"])


WRITING = """\
from pathlib import Path
import perfci
from lib import work

@perfci.benchmark
def writing():
    Path("out.json").write_text("{}")
    Path("unused.py").write_text("x = 3")
    return work
"""


@pytest.mark.processes
@pytest.mark.usefixtures("single_round")
def test_a_side_that_writes_to_its_sources_is_an_error(settled: Project) -> None:
    settled.commit("writing", **{"benchmarks/bench_one.py": WRITING})
    settled.commit("other", **{"lib.py": "def work():\n    return sum(range(1001))\n"})
    report = settled.report("compare", "HEAD~1", "HEAD", code=3)
    assert report["verdict"]["status"] == "error"
    written = {one["side"]: one for one in report["failures"] if one["case"] == "unused.py"}
    assert set(written) == {"base", "head"}
    assert "`unused.py` of base's tree changed while it was measured" in written["base"]["message"]


@pytest.mark.processes
@pytest.mark.usefixtures("single_round")
def test_prose_that_a_case_reads_is_its_code(settled: Project) -> None:
    settled.commit("notes", **{"notes.md": "one, two\n", "unused.py": "x = 2\n"})
    report = settled.report("compare", "HEAD~1", "HEAD")
    assert rows(report, "counting")["latency_p50"]["status"] == "untouched"
    assert rows(report, "reading")["latency_p50"]["ratio"] is not None


def test_what_is_imported_is_measured(settled: Project) -> None:
    settled.commit("change", **{"lib.py": "def work():\n    return sum(range(1001))\n"})
    assert statuses(settled) == MEASURED


@pytest.mark.parametrize("option", [("--all",), ("--keep-bursts", "kept")])
def test_an_option_measures_everything(settled: Project, option: tuple[str, ...]) -> None:
    settled.commit("other", **{"unused.py": "x = 2\n"})
    assert statuses(settled, *option) == MEASURED


STARTING = """\
import multiprocessing
import subprocess
import sys
import perfci
from lib import work

@perfci.benchmark
def plain():
    return work

@perfci.benchmark
def starting():
    subprocess.run([sys.executable, "-c", ""], check=True)
    return work

@perfci.benchmark
def spawning():
    process = multiprocessing.get_context("spawn").Process(target=print)
    process.start()
    process.join()
    return work
"""


@pytest.mark.processes
@pytest.mark.usefixtures("single_round")
def test_a_case_that_starts_a_process_is_measured(settled: Project) -> None:
    settled.commit("starting", **{"benchmarks/bench_one.py": STARTING})
    settled.commit("other", **{"unused.py": "x = 2\n"})
    report = settled.report("compare", "HEAD~1", "HEAD")
    assert rows(report, "plain")["latency_p50"]["status"] == "untouched"
    assert rows(report, "starting")["latency_p50"]["ratio"] is not None
    assert rows(report, "spawning")["latency_p50"]["ratio"] is not None
