"""A suite of pytest's tests, measured as it is: real sessions of a real repository."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.builders.project import QUICK, Project, rows

pytestmark = pytest.mark.processes

SUITE = """\
import contextlib
import pytest
from lib import work

OPEN = []

@contextlib.contextmanager
def held():
    OPEN.append(1)
    yield
    OPEN.clear()

@pytest.mark.parametrize(("size", "kind"), [(10, "a b"), (1000, "c/d")])
def test_sort(benchmark, size, kind):
    assert benchmark(sorted, range(size)) == list(range(size))

class TestHeld:
    @pytest.mark.benchmark(group="held")
    def test_open(self, benchmark, numbers):
        def call():
            assert OPEN and numbers[0].exists()
            return work()
        with held():
            benchmark.pedantic(call, rounds=3)

@pytest.mark.perfci
def test_whole(numbers):
    assert numbers[0].exists() and work()

def test_that_measures_nothing():
    assert work()
"""
FIXTURES = """\
import pytest

@pytest.fixture
def numbers(tmp_path):
    (tmp_path / "kept").touch()
    yield [tmp_path / "kept"]
    (tmp_path / "kept").unlink()
"""
BROKEN = """\
import pytest

def test_fails(benchmark):
    assert benchmark(lambda: 1) == 2

def test_skipped(benchmark):
    pytest.skip("no card here")

def test_fixture(benchmark, absent):
    benchmark(len, "")

def test_renews(benchmark):
    benchmark.pedantic(len, setup=lambda: (("",), {}))

def test_never(benchmark):
    pass
"""
BENCHMARKS = """\
import perfci.pytest

suite = perfci.pytest.benchmarks("test_speed.py", tags=["suite"])
"""


@pytest.fixture
def suite(project: Project) -> Project:
    project.write("pyproject.toml", QUICK + 'benchmarks = "tests"\n')
    project.write("conftest.py", "import pytest\n")
    project.write("tests/conftest.py", FIXTURES)
    project.write("lib.py", "def work():\n    return sum(range(1000))\n")
    project.write("tests/test_speed.py", SUITE)
    project.write("pytest.ini", "[pytest]\naddopts = -n 2 --strict-markers\npythonpath = .\n")
    project.commit("base", **{"tests/bench_suite.py": BENCHMARKS})
    return project


def test_a_case_for_each_test_and_set_of_parameters_that_measures(suite: Project) -> None:
    listed = suite.perfci("list").without_traceback()
    assert listed.code == 0, listed.text
    for case in (
        "test_speed.test_sort[params=10-a_b]",
        "test_speed.test_sort[params=1000-c_d]",
        "test_speed.TestHeld.test_open",
        "test_speed.test_whole",
    ):
        assert case in listed.out
    assert "nothing" not in listed.out


@pytest.mark.parametrize(
    ("name", "cases"),
    [("pytest.ini", ["TestHeld.test_open", "test_whole"]), ("pyproject.toml", ["test_whole"])],
)
def test_each_side_runs_its_own_code_and_has_its_own_commits_configuration_of_pytest(
    suite: Project, name: str, cases: list[str]
) -> None:
    """pytest looks for it above the tests, which are head's: base read head's, and was refused.

    What a test holds open is open while its work is measured.
    """
    if name != "pytest.ini":
        suite.git("rm", "--quiet", "pytest.ini")
    suite.commit("before", **{"lib.py": "def work():\n    return sum(range(1001))\n"})
    text = (suite.folder / name).read_text(encoding="utf-8")
    slower = "def work():\n    return sum(range(5000))\n"
    suite.commit("changed", **{name: f"{text}# more\n", "lib.py": slower})
    selected = ("-k", " or ".join(case.rpartition("_")[2] for case in cases))
    report = suite.report("compare", "HEAD~1", "HEAD", *selected, "--rounds", "2")
    assert not report["failures"], report["failures"]
    for case in cases:
        assert rows(report, f"test_speed.{case}")["latency_p50"]["ratio"] > 2.0


def test_a_test_that_fails_is_a_case_that_fails_and_says_why(suite: Project) -> None:
    suite.commit("broken", **{"tests/test_speed.py": BROKEN})
    report = suite.report("run", "--rounds", "2", code=3)
    said = {one["case"].rpartition(".")[2]: one["message"] for one in report["failures"]}
    assert "test_speed.py:4: AssertionError" in said["test_fails"]
    assert "no card here" in said["test_skipped"]
    assert said["test_fixture"].startswith("fixture 'absent' not found")
    assert "nothing in between" in said["test_renews"]
    assert "never called `benchmark`" in said["test_never"]


@pytest.mark.parametrize(
    ("text", "why"),
    [("def test_a():\n    pass\n", "measures"), ("import absent_module\n", "absent_module")],
)
def test_a_suite_without_anything_to_measure_is_an_error(
    suite: Project, text: str, why: str
) -> None:
    suite.write("tests/test_speed.py", text)
    listed = suite.perfci("list").without_traceback()
    assert why in listed.text
    assert "bench_suite.py:3" in listed.text


def test_tests_elsewhere_are_refused(suite: Project) -> None:
    suite.write("tests/bench_suite.py", BENCHMARKS.replace("test_speed", "../test_speed"))
    assert "put this file next to the tests" in suite.perfci("list").without_traceback().text


def test_pytest_itself_runs_the_suite_as_tests(suite: Project) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="],
        check=False,
        cwd=suite.folder,
        capture_output=True,
        text=True,
    )
    assert "5 passed" in done.stdout, done.stdout + done.stderr
