"""A suite of pytest's tests, measured as it is: real sessions of a real repository."""

from __future__ import annotations

import re

import pytest

from tests.builders.project import QUICK, Project, rows

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("single_round")]

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

def test_request(benchmark, request):
    benchmark(len, request.getfixturevalue("absent"))

def test_never(benchmark):
    pass
"""
ROOT = """\
import pytest

def pytest_addoption(parser):
    parser.addoption("--size", type=int)

@pytest.fixture
def size(request):
    return request.config.getoption("--size")
"""
AS_IT_IS = """\
import pytest

USED = []

@pytest.mark.benchmark(group="of one", min_rounds=3)
@pytest.mark.parametrize("count", [5])
def test_prepared(benchmark, count, size, numbers):
    assert size == 9 and numbers[0].exists()
    benchmark.extra_info["count"] = count

    def setup():
        USED.append(list(range(count)))
        return (USED[-1],), {}

    def use(values):
        assert len(values) == count
        values.clear()

    def teardown(values):
        assert USED.pop() is values and not values

    benchmark.pedantic(use, setup=setup, teardown=teardown, rounds=10)
    assert not USED

@pytest.mark.benchmark
def test_whole(size):
    assert size == 9

@pytest.mark.skipif(True, reason="no card")
def test_skipped(benchmark):
    benchmark(len, "")
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
    report = suite.report("compare", "HEAD~1", "HEAD", *selected)
    assert not report["failures"], report["failures"]
    for case in cases:
        assert rows(report, f"test_speed.{case}")["latency_p50"]["ratio"] > 2.0


def test_a_suite_is_read_as_it_is_with_the_conftest_and_the_options_of_its_root(
    suite: Project,
) -> None:
    """Its root has the fixture and the option; `-n` and `--cov` are of plugins that are off."""
    suite.write("pyproject.toml", QUICK + 'benchmarks = "tests"\npattern = "test_*.py"\n')
    suite.write("conftest.py", ROOT)
    suite.write("pytest.ini", "[pytest]\naddopts = -n 2 --cov=lib --strict-config --size=9\n")
    suite.write("tests/test_speed.py", AS_IT_IS)
    listed = suite.perfci("list").without_traceback()
    assert listed.code == 0, listed.text
    assert re.search(r"test_prepared\[params=5\] +tests/test_speed.py:5 +#of_one", listed.out)
    assert re.search(r"test_skipped .*skipped: no card", listed.out)
    report = suite.report("run")
    assert not report["failures"], report["failures"]
    assert {row["case"] for row in report["results"]} == {
        f"test_speed.{name}" for name in ("test_prepared[params=5]", "test_whole")
    }


def test_a_test_that_fails_is_a_case_that_fails_and_says_why(suite: Project) -> None:
    suite.commit("broken", **{"tests/test_speed.py": BROKEN})
    report = suite.report("run", code=3)
    said = {one["case"].rpartition(".")[2]: one["message"] for one in report["failures"]}
    assert "test_speed.py:4: AssertionError" in said["test_fails"]
    assert report["skipped"] == {"test_speed.test_skipped": "the test skipped itself: no card here"}
    assert said["test_request"].startswith("fixture 'absent' not found")
    assert "never called `benchmark`" in said["test_never"]
