"""Suites for other tools, as they are: one worker, and what the suite sees in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfci.api import fit_label
from perfci.measure.selection import written_in
from perfci.suites import asv, usual_place
from perfci.suites.pytest.session import SampleStatistics
from tests.worker.driver import Bench

STATISTICS = {
    (3.0, 1.0, 2.0, 8.0, 2.5): (
        "1.0 8.0 3.3 2.729469 5 2.5 2.5 1.75 4.25 0 1 1;0 1.0 8.0 0.303030 16.5"
    ),
    (1.0, 1.0, 50.0, 2.0, 3.0, 2.0, 2.0): (
        "1.0 50.0 8.714286 18.218254 7 2.0 1.5 1.25 2.75 1 1 1;1 1.0 3.0 0.114754 61.0"
    ),
    (4.0,): "4.0 4.0 4.0 0 1 4.0 0.0 4.0 4.0 0 0 0;0 4.0 4.0 0.25 4.0",
}
"""Times, and what pytest-benchmark 5.3.1 makes of them, in the order of the fields."""
BRANCHING = """\
import pytest

def real():
    return "real"

def test_disabled(benchmark):
    if benchmark.disabled:
        pytest.fail("a stub would be measured")
    assert benchmark(real) == "real"

def test_enabled(benchmark):
    assert benchmark(real if benchmark.enabled else print) == "real"

def test_option(benchmark, request):
    option = request.config.getoption
    if option("--benchmark-skip") or option("benchmark_disable") or not option("benchmark_only"):
        pytest.skip("not a benchmark's run")
    benchmark(real)
"""
STATED = """\
import pytest

def test_attribute(benchmark):
    assert benchmark.stats is None
    benchmark(sum, range(100))
    assert 0 < benchmark.stats.stats.min <= benchmark.stats.stats.mean < 60
    for field in benchmark.stats.stats.fields:
        assert benchmark.stats[field] == getattr(benchmark.stats.stats, field)

def test_item(benchmark):
    benchmark.pedantic(sum, args=[range(100)], rounds=5, iterations=3)
    assert benchmark.stats["rounds"] == len(benchmark.stats.stats.data) > 1
    benchmark.extra_info["mean_us"] = benchmark.stats["mean"] * 1e6
    assert benchmark.stats["extra_info"]["mean_us"] > 0

def test_prepared(benchmark):
    benchmark.pedantic(list.pop, setup=lambda: (([1],), {}), rounds=5)
    assert benchmark.stats["total"] > 0 and benchmark.stats.stats
    stats = benchmark.stats.stats
    assert stats.ld15iqr <= stats.q1 <= stats.median <= stats.q3 <= stats.hd15iqr
    assert stats.iqr == stats.q3 - stats.q1 and stats.sorted_data == sorted(stats.data)
    assert benchmark.stats.as_dict()["stats"]["outliers"].count(";") == 1

def test_too_slow(benchmark):
    benchmark(sum, range(100))
    assert benchmark.stats.stats.median < 0

@pytest.mark.benchmark(group="two words")
@pytest.mark.parametrize("size", [3], ids=["three"])
def test_attributes(benchmark, size):
    assert benchmark.name == "test_attributes[three]"
    assert benchmark.fullname.endswith("test_stated.py::test_attributes[three]")
    assert (benchmark.group, benchmark.param) == ("two words", "three")
    assert benchmark.params == {"size": 3}
    assert not (benchmark.has_error or benchmark.skipped or benchmark.cprofile_stats)
    benchmark.group = "another"
    benchmark(sum, range(size))
    assert benchmark.stats.group == "another" and benchmark.stats.params == {"size": 3}
"""
CONFTEST = """\
import pytest

def pytest_benchmark_update_machine_info(config, machine_info):
    raise AssertionError("no plugin calls this")

@pytest.hookimpl(hookwrapper=True)
def pytest_benchmark_generate_json(config, benchmarks, include_data, machine_info, commit_info):
    yield

def pytest_benchmark_scale_unit(config, unit, benchmarks, best, worst, sort):
    return "", 1.0

def pytest_configure_node(node):
    raise AssertionError("nor this, of pytest-xdist")

def pytest_addoption(parser):
    parser.addoption("--benchmark-flavour", default="plain")

def pytest_collection_modifyitems(config, items):
    assert config.getoption("numprocesses") is None and config.getoption("--dist") == "no"
    assert config.getoption("--benchmark-flavour") == "plain"
    assert config.getoption("--benchmark-min-rounds") == 5
    if config.getoption("--benchmark-disable") or config.option.benchmark_skip:
        items.clear()
"""
ASV = """\
import os, sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
assert Path(os.environ["ASV_CONF_DIR"]) == HERE.parent
assert os.environ["ASV_COMMIT"] == "c0ffee"
assert os.environ["ASV_PROJECT"] == "toy // one"
assert Path(os.environ["ASV_BUILD_DIR"]) == HERE.parents[2]
assert os.environ["ASV_ENV_DIR"] == sys.prefix
assert {"ASV_ENV_NAME", "ASV_ENV_TYPE", "ASV_BUILD_CACHE_DIR"} <= os.environ.keys()


class Skips:
    params = [False, True]
    param_names = ["ok"]

    def setup(self, ok):
        if not ok:
            raise NotImplementedError("no card")

    def time_partly(self, ok):
        assert ok


class Rate:
    def track_nan(self):
        return float("nan")

    def track_infinite(self):
        return float("inf")

    def track_nothing(self):
        return None
"""
CONFIGURATIONS = {
    "asv.conf.json": '{"version": 1, "project": "toy // one", "benchmark_dir": "speed"}\n',
    "asv.conf.jsonc": """\
// as asv reads it
{
    /* "benchmark_dir": "elsewhere", */ "version": 1, // "benchmark_dir": "elsewhere"
    project: 'toy // one',
    "benchmark_dir": "./speed",
    "matrix": {"req": {"numpy": ["1", "2",],},},
}
""",
}
ADDRESSES = """\
import pytest

class Kind:
    pass

def made():
    return [Kind(), Kind(), print]

def pytest_generate_tests(metafunc):
    metafunc.parametrize("each", made(), ids=repr)

def test_each(benchmark, each):
    benchmark(repr, each)
"""


OWN_NAMES = """\
def bench_ascii(benchmark):
    benchmark(str.encode, "a", "ascii")

def bench_slow(benchmark):
    benchmark(str.encode, "a", "idna")

def test_nothing(benchmark):
    raise AssertionError
"""


def discovered(bench: Bench, path: Path, **fields: Any) -> dict[str, Any]:
    """Return the discovery of one file."""
    return bench.discover(benchmark_files=(str(path),), **fields)


def ids(discovery: dict[str, Any]) -> list[str]:
    assert not discovery["failures"], discovery["failures"]
    return [case["id"] for case in discovery["cases"]]


@pytest.fixture
def suite(forked_bench: Bench) -> Bench:
    return forked_bench


@pytest.mark.parametrize("test", ["disabled", "enabled", "option"])
def test_a_test_that_asks_whether_it_is_measured_measures_the_real_work(
    suite: Bench, test: str
) -> None:
    suite.write("[pytest]\naddopts = --benchmark-skip --benchmark-disable\n", "pytest.ini")
    path = suite.write(BRANCHING, "tests/test_branching.py")
    assert suite.measure(path, f"test_branching.test_{test}")["samples_ns"]


@pytest.mark.parametrize("test", ["attribute", "item", "prepared", "attributes[params=three]"])
def test_a_test_reads_the_statistics_of_what_was_measured(suite: Bench, test: str) -> None:
    path = suite.write(STATED, "tests/test_stated.py")
    assert suite.measure(path, f"test_stated.test_{test}")["samples_ns"]


def test_an_assertion_on_the_statistics_that_fails_fails_the_case(suite: Bench) -> None:
    path = suite.write(STATED, "tests/test_stated.py")
    with suite.start(suite.order(path, "test_stated.test_too_slow")) as worker:
        worker.wait_for("ready")
        suite.block(worker, calls=3)
        worker.send({"do": "finish"})
        failed = worker.wait_for("failed")
    assert "assert benchmark.stats.stats.median < 0" in failed["message"] or (
        failed["kind"] == "AssertionError"
    )


@pytest.mark.parametrize("times", STATISTICS)
def test_the_statistics_are_pytest_benchmarks(times: tuple[float, ...]) -> None:
    made = SampleStatistics(times)
    for name, text in zip(made.fields, STATISTICS[times].split(), strict=True):
        value = getattr(made, name)
        assert value == (text if ";" in text else pytest.approx(float(text), rel=1e-5)), name


def test_hooks_and_options_of_plugins_that_are_off_are_known(suite: Bench) -> None:
    options = "addopts = --benchmark-disable -n 3\nrequired_plugins = pytest-benchmark\n"
    suite.write(f"[pytest]\n{options}", "pytest.ini")
    suite.write(CONFTEST, "tests/conftest.py")
    path = suite.write(
        "def test_join(benchmark):\n    benchmark(','.join, 'ab')\n", "tests/test_j.py"
    )
    assert ids(discovered(suite, path)) == ["test_j.test_join"]
    assert suite.measure(path, "test_j.test_join")["samples_ns"]


def test_parameters_without_a_text_of_their_own_have_stable_labels(suite: Bench) -> None:
    path = suite.write(ADDRESSES, "tests/test_a.py")
    labels = ["test_a.Kind_object", "test_a.Kind_object-2", "built-in_function_print"]
    assert ids(discovered(suite, path)) == [f"test_a.test_each[params={each}]" for each in labels]
    assert suite.measure(path, f"test_a.test_each[params={labels[1]}]")["samples_ns"]


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (("<a.B object at 0x7f1ea0>", "<a.B object at 0x7f1eb0>"), ("a.B_object", "a.B_object-2")),
        (("<function f at 0x55d0>",), ("function_f",)),
        (("<", "<=", "", " "), ("less-than_sign", "less-than_sign-equals_sign", "empty", "space")),
        (("+", "-1", "_own", "a/b"), ("+", "-1", "own", "a_b")),
    ],
)
def test_labels_are_readable_and_the_same_in_each_process(
    texts: tuple[str, ...], labels: tuple[str, ...]
) -> None:
    made: list[str] = []
    for text in texts:
        made.append(fit_label(text, made))
    assert tuple(made) == labels


def test_long_texts_keep_their_label_whatever_lies_before_them() -> None:
    first, second = "x" * 100 + "1", "x" * 100 + "2"
    assert fit_label(first) != fit_label(second)
    assert fit_label(second) == fit_label(second, [fit_label(first)])
    assert len(fit_label(first)) <= 60


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("folder", ["bench", "python/bench", "."])
def test_asvs_configuration_is_read_as_asv_reads_it(tmp_path: Path, name: str, folder: str) -> None:
    suite = tmp_path / folder / "speed"
    suite.mkdir(parents=True)
    (tmp_path / folder / name).write_text(CONFIGURATIONS[name], encoding="utf-8")
    place = suite.relative_to(tmp_path).as_posix()
    assert usual_place(tmp_path) == (place, "*.py")
    assert asv.holds(suite / "cases.py", tmp_path, "")
    assert not asv.holds(tmp_path / "other.py", tmp_path, "")


def test_asvs_folder_may_lie_beside_its_configuration(tmp_path: Path) -> None:
    for folder in ("ci", "perf/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ci/asv.conf.json").write_text('{"benchmark_dir": "../perf"}', encoding="utf-8")
    assert usual_place(tmp_path) == ("perf", "*.py")
    assert asv.holds(tmp_path / "perf/deep/cases.py", tmp_path, "")
    assert not asv.holds(tmp_path / "ci/other.py", tmp_path, "")


@pytest.fixture
def asv_suite(suite: Bench) -> Path:
    pytest.importorskip("asv_runner", reason="asv_runner is not installed")
    suite.write(CONFIGURATIONS["asv.conf.json"], "python/bench/asv.conf.json")
    suite.write("", "python/bench/speed/__init__.py")
    return suite.write(ASV, "python/bench/speed/cases.py")


def test_an_asv_suite_has_asvs_variables_and_skips_as_under_asv(
    suite: Bench, asv_suite: Path
) -> None:
    found = discovered(suite, asv_suite, commit="c0ffee")
    assert len(ids(found)) == 5
    environment = found["imports"]["python/bench/speed/cases.py"]["environment"]
    assert not [name for name in environment if name.startswith("ASV_")]
    for label in ("True", "False"):
        case = f"cases.Skips.time_partly[ok={label}]"
        if label == "True":
            assert suite.measure(asv_suite, case, commit="c0ffee")["samples_ns"]
        else:
            failed = suite.failure(asv_suite, case, commit="c0ffee")
            assert failed["kind"] == "test_skipped"
            assert failed["message"] == "its setup raised NotImplementedError('no card')"


@pytest.mark.parametrize(
    ("name", "value"), [("nan", "nan"), ("infinite", "inf"), ("nothing", "nan")]
)
def test_a_tracked_value_that_is_no_number_is_missing(
    suite: Bench, asv_suite: Path, name: str, value: str
) -> None:
    measured = suite.measure(asv_suite, f"cases.Rate.track_{name}", commit="c0ffee")
    assert measured["missing"]["value"] == f"the benchmark gave {value}"
    assert measured["warnings"] == [f"value is missing: the benchmark gave {value}"]


def test_arguments_of_pytest_choose_its_configuration_and_its_tests(suite: Bench) -> None:
    suite.write("[pytest]\naddopts = --absent\n", "pytest.ini")
    suite.write("[pytest]\npython_functions = bench_*\n", "benchmark.ini")
    path = suite.write(OWN_NAMES, "speed/encoding_benchmark.py")
    arguments = ("-c", "benchmark.ini", "-k", "not slow")
    found = discovered(suite, path, pytest_args=arguments)
    assert ids(found) == ["encoding_benchmark.bench_ascii"]
    measured = suite.measure(path, "encoding_benchmark.bench_ascii", pytest_args=arguments)
    assert measured["samples_ns"]


def test_arguments_of_pytest_count_for_tests_that_a_benchmark_file_names(suite: Bench) -> None:
    suite.write("[pytest]\npython_functions = bench_*\n", "benchmark.ini")
    suite.write(OWN_NAMES, "speed/encoding_benchmark.py")
    chosen = 'import perfci.pytest\nsuite = perfci.pytest.benchmarks("encoding_benchmark.py")\n'
    path = suite.write(chosen, "speed/bench_suite.py")
    assert len(ids(discovered(suite, path, pytest_args=("-c", "benchmark.ini")))) == 2


def test_equal_names_of_files_are_told_apart_by_their_paths(suite: Bench) -> None:
    arguments = ("--import-mode=importlib",)
    test = "def test_join(benchmark):\n    benchmark(','.join, 'ab')\n"
    names = ("a/x/test_speed.py", "b/test_speed.py", "b/test_other.py")
    paths = tuple(str(suite.write(test, f"tests/{name}")) for name in names)
    found = suite.discover(benchmark_files=paths, suite_files=paths, pytest_args=arguments)
    expected = ["tests.a.x.test_speed.test_join", "tests.b.test_speed.test_join"]
    assert ids(found) == [*expected, "test_other.test_join"]
    for case, path in zip(expected, paths, strict=False):
        measured = suite.measure(
            Path(path), case, suite_files=paths, pytest_args=arguments, benchmark_files=paths
        )
        assert measured["samples_ns"]
    written = written_in(suite.root, paths)
    assert [name for names in written.values() for name in names] == ids(found)


def test_a_module_that_skips_itself_says_why(suite: Bench) -> None:
    path = suite.write("import pytest\n\npytest.importorskip('absent_library')\n", "test_a.py")
    (failed,) = discovered(suite, path)["failures"]
    assert failed["kind"] == "test_skipped"
    assert "absent_library" in failed["message"]
