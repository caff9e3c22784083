"""pytest's sessions in a worker: one lists the tests of files, another runs a test to measure it.

pytest itself collects the tests and makes the fixtures. This module imports pytest, which is
installed in the Python that measures.
"""

from __future__ import annotations

import inspect
import statistics
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from _pytest.skipping import evaluate_skip_marks

from perfci.api import fit_label, fit_name
from perfci.clock import perf_counter
from perfci.collector import Work
from perfci.errors import Unusable
from perfci.model.worker import TEST_SKIPPED
from perfci.suites import FIXTURES, PYTEST_ARGUMENTS, module_name

MARK = "perfci"
MEASURING = ("benchmark", "codspeed")
"""The plugins that have a fixture ``benchmark`` of their own."""
_DISTURBING = (
    *("cacheprovider", "faulthandler", "logging", "warnings", "xdist"),
    *("pytest_cov", "timeout", "rerunfailures"),
)
"""Plugins that would run during the calls, repeat tests, or end them early."""
_STRICTNESS = ("--strict-markers", "--strict-config", "--strict")
"""Options that would refuse the marks and configuration keys of plugins that are off."""
_OPTIONS = (
    *("-q", "--capture=no", "--assert=plain"),
    *(f"-pno:{plugin}" for plugin in (*MEASURING, "pytest_benchmark.plugin", *_DISTURBING, MARK)),
    *(f"-o{key}=false" for key in ("strict", "strict_config", "strict_markers")),
    "-orequired_plugins=",
)
_OPTIONS_OFF: Mapping[str, Any] = {
    "benchmark_only": True, "benchmark_enable": True, "benchmark_disable": False,
    "benchmark_skip": False, "benchmark_disable_gc": False, "benchmark_quiet": False,
    "benchmark_verbose": False, "benchmark_save": None, "benchmark_save_data": False,
    "benchmark_autosave": None, "benchmark_json": None, "benchmark_csv": (),
    "benchmark_histogram": (), "benchmark_compare": (), "benchmark_compare_fail": None,
    "benchmark_min_time": 0.000005, "benchmark_max_time": 1.0, "benchmark_min_rounds": 5,
    "benchmark_precision": None, "benchmark_confidence": 0.99, "benchmark_warmup": None,
    "benchmark_warmup_iterations": 100_000, "benchmark_calibration_precision": 10,
    "benchmark_timer": "time.perf_counter", "benchmark_time_unit": None,
    "benchmark_cprofile": None, "benchmark_cprofile_loops": 1, "benchmark_cprofile_top": 25,
    "benchmark_cprofile_dump": (), "benchmark_storage": "file://./.benchmarks",
    "benchmark_netrc": "", "benchmark_sort": "min", "benchmark_group_by": "group",
    "benchmark_columns": None, "benchmark_name": "normal", "codspeed": False,
    "codspeed_mode": None, "numprocesses": None, "maxprocesses": None, "dist": "no", "tx": (),
    "cov_source": (), "timeout": None, "reruns": None,
}  # fmt: skip
"""Options of plugins that are off, with the values that a conftest.py reads. The values are those
under ``--benchmark-only``, because perfci measures. ``addopts`` doesn't change them."""


def _options(root: Path) -> list[str]:
    """Return pytest's options for tests of the tree ``root``, with ``pytest_args`` last."""
    return [*_OPTIONS, f"--confcutdir={root}", f"--rootdir={root}", *PYTEST_ARGUMENTS]


def know_marks(config: pytest.Config) -> None:
    """Register the marks that measure."""
    config.addinivalue_line("markers", f"{MARK}: perfci measures the whole test")
    config.addinivalue_line(
        "markers",
        "benchmark: pytest-benchmark's options; without its fixture, the whole test is measured",
    )


class Fixtures:
    """A plugin of a session: its fixtures. Here they only call the function, and don't measure."""

    disabled = True

    def measure(self, work: Any) -> Sequence[float]:
        """Measure, and return the times of the recorded calls, in s."""
        del work
        return ()

    def _call(self, request: pytest.FixtureRequest) -> BenchmarkFixture:
        """Return a fixture that measures the function passed to it."""
        return BenchmarkFixture(request.node, self)

    # the attribute's name is the fixture's
    benchmark, codspeed_benchmark = pytest.fixture(_call), pytest.fixture(_call)


class _Session(Fixtures):
    """A session of pytest in a worker: its options, and the first exception in it."""

    disabled = False

    def __init__(self, places: Sequence[str]) -> None:
        self._places = places
        self.raised: BaseException | None = None

    def run(self, options: Sequence[str]) -> None:
        """Run pytest on the places. If it refuses to start, set ``raised`` to Unusable."""
        code = pytest.main([*options, *self._places], [self])
        if code == pytest.ExitCode.USAGE_ERROR and self.raised is None:
            message = "pytest refuses to start; the worker's log says why"
            self.raised = Unusable("usage_error", message)

    @pytest.hookimpl(wrapper=True)
    def pytest_load_initial_conftests(
        self, parser: pytest.Parser, args: list[str]
    ) -> Generator[None, None, None]:
        """Drop the options in ``addopts``, and their values, of plugins that are off."""
        try:
            yield
        except BaseException as error:
            self.raised = getattr(error, "cause", error)  # pytest wraps the error of a conftest.py
            raise
        known, unknown = parser.parse_known_and_unknown_args(args)
        # the values of unknown options look like paths, and addopts may have paths of its own
        dropped = {*unknown, *_STRICTNESS, *known.file_or_dir} - {*self._places}
        args[:] = [word for word in args if word not in dropped]
        for name, value in _OPTIONS_OFF.items():
            if not hasattr(known, name):  # a conftest.py may have an option of that name
                parser.addoption(f"--{name.replace('_', '-')}", default=value)

    def pytest_plugin_registered(self, plugin: object, manager: pytest.PytestPluginManager) -> None:
        """Allow hooks of plugins that are off. Nothing calls them."""
        for caller in manager.get_hookcallers(plugin) or ():
            for hook in () if caller.has_spec() else caller.get_hookimpls():
                hook.optionalhook = True  # type: ignore[misc]

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Keep the exception of a hook: a plugin's, a conftest.py's, or one of this class."""
        self.raised = self.raised or excinfo.value

    def pytest_configure(self, config: pytest.Config) -> None:
        know_marks(config)


@dataclass(slots=True)
class CollectedTest:
    """A test that measures. Each of its parameter sets has a label.

    ``place`` is pytest's id of the test, without parameters. ``skips`` has the reasons of skipped
    labels, or that of the test itself for "".
    """

    place: str
    file: str
    line: int
    group: str
    labels: list[str] = field(default_factory=list)
    skips: dict[str, str] = field(default_factory=dict)


class Collection(_Session):
    """The tests of some files that measure, by name."""

    def __init__(self, files: Sequence[Path], root: Path, others: Sequence[str] = ()) -> None:
        super().__init__([str(file) for file in files])
        self.tests: dict[str, CollectedTest] = {}
        self._root, self._others = root, others
        self.run([*_options(root), "--collect-only"])
        if self.raised:
            raise self.raised

    def pytest_exception_interact(self, call: pytest.CallInfo[Any]) -> None:
        """Keep the exception of an import, if a file can't be collected."""
        if call.excinfo and self.raised is None:
            error = call.excinfo.value
            self.raised = error.__cause__ or error

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the reason of a module that skips itself."""
        if report.skipped and isinstance(report.longrepr, tuple) and self.raised is None:
            self.raised = Unusable(TEST_SKIPPED, report.longrepr[-1])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the tests that measure."""
        for item in session.items:
            if isinstance(item, pytest.Function) and _measures(item):
                self._take(item)

    def _take(self, item: pytest.Function) -> None:
        _, line, _ = item.location
        inner = item.nodeid.partition("::")[2].partition("[")[0]
        module = module_name(item.path, self._root, self._others)
        name = ".".join((module, *inner.split("::")))
        group = _group(item)
        test = self.tests.setdefault(
            fit_name(name),
            CollectedTest(
                f"{item.path}::{inner}",
                str(item.path),
                (line or 0) + 1,
                fit_name(group) if group else "",
            ),
        )
        label = _add_label(item, test.labels)
        if skip := evaluate_skip_marks(item):
            test.skips[label] = skip.reason or "marked as skipped"


def _measures(item: pytest.Function) -> bool:
    fixtures = not FIXTURES.isdisjoint(item.fixturenames)
    return fixtures or any(item.get_closest_marker(mark) for mark in (MARK, "benchmark"))


def _add_label(item: pytest.Function, labels: list[str]) -> str:
    """Return the label of the test's parameters, "" without any, and add it to ``labels``."""
    if parameters := getattr(item, "callspec", None):
        labels.append(fit_label(parameters.id, labels))
        return labels[-1]
    return ""


def _group(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("benchmark")
    group = mark.kwargs.get("group") if mark else None
    return group if isinstance(group, str) else None


MeasureWork = Callable[[Any], Sequence[float]]
"""The worker's function that measures. It returns the times of the recorded calls, in s."""


def run_test(root: Path, place: str, measure_work: MeasureWork, *, params: str = "") -> None:
    """Run the test at ``place``. Within it, call ``measure_work`` with the work that it measures.

    ``params`` is the axis of its parameters: their label.
    """
    session = _MeasuringSession(place, params, measure_work)
    session.run(_options(root))
    if isinstance(session.raised, pytest.skip.Exception):
        raise Unusable(TEST_SKIPPED, f"the test skipped itself: {session.raised}")
    if session.raised:
        raise session.raised
    if not session.measured:
        raise Unusable("nothing_returned", f"{place} never called `benchmark`")


class _MeasuringSession(_Session):
    """A session that runs one test and passes its work to the worker, which measures it."""

    def __init__(self, place: str, label: str, measure_work: MeasureWork) -> None:
        super().__init__([place])
        self._label = label
        self._measure_work = measure_work
        self.measured = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the parameters with the label. Their id may differ between processes."""
        labels: list[str] = []
        functions = [item for item in items if isinstance(item, pytest.Function)]
        items[:] = [item for item in functions if _add_label(item, labels) == self._label]

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> object:
        """Measure a marked test as a whole. A test with a fixture that measures runs as usual."""
        if not FIXTURES.isdisjoint(pyfuncitem.fixturenames):
            return None
        parameters = inspect.signature(pyfuncitem.obj).parameters
        given = {
            name: pyfuncitem.funcargs[name] for name in parameters if name in pyfuncitem.funcargs
        }
        self.measure(partial(pyfuncitem.obj, **given))
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep the first exception: of a fixture, the test, the worker, or the teardown."""
        report = yield
        if call.excinfo and self.raised is None:
            self.raised = call.excinfo.value
            if isinstance(self.raised, pytest.FixtureLookupError):
                self.raised = LookupError(self.raised.formatrepr().errorstring.splitlines()[0])
        return report

    def measure(self, work: Any) -> Sequence[float]:
        """Have the worker measure, and return the times of the recorded calls, in s."""
        self.measured = True
        try:
            return self._measure_work(work)
        except BaseException as error:
            self.raised = error
            raise


class BenchmarkFixture:
    """The fixture, with pytest-benchmark's attributes. Options for timing have no effect."""

    has_error = skipped = cprofile = False
    cprofile_loops = 1
    cprofile_dump = cprofile_stats = None

    def __init__(self, item: pytest.Item, fixtures: Fixtures) -> None:
        parameters = getattr(item, "callspec", None)
        self.name, self.fullname, self.group = item.name, item.nodeid, _group(item)
        self.param: str | None = parameters.id if parameters else None
        self.params: dict[str, Any] | None = parameters.params if parameters else None
        self.extra_info: dict[str, Any] = {}
        self.disabled = fixtures.disabled
        self.stats: CallStatistics | None = None
        self._measure: Callable[[Any], Sequence[float]] | None = fixtures.measure

    @property
    def enabled(self) -> bool:
        """Whether calls are measured."""
        return not self.disabled

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Measure ``function(*args, **kwargs)``, then call it and return its result."""
        call = partial(function, *args, **kwargs) if args or kwargs else function
        return self._measured(call, call)

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., Any] | None = None,
        **_timing: int,
    ) -> Any:
        """Measure the target. ``setup`` and ``teardown`` run around each call, untimed.

        ``rounds``, ``iterations`` and ``warmup_rounds`` are ignored: perfci decides on them.
        """
        if not (setup or teardown):
            return self(target, *args, **(kwargs or {}))
        calls = _PreparedCalls(target, args, kwargs or {}, setup, teardown)
        output = self._measured(Work(calls.call, prepare=calls.prepare), calls.call, calls.prepare)
        calls.tear_down()
        return output

    def _measured(
        self, work: Any, call: Callable[[], Any], prepare: Callable[[], None] = lambda: None
    ) -> Any:
        """Measure the work, then prepare a call, make it, and return its result."""
        if self._measure is None:
            raise RuntimeError("a test has one measured call: write another test")
        measure, self._measure = self._measure, None
        taken = measure(work)
        prepare()
        began = perf_counter()
        output = call()
        if self.enabled:
            self.stats = CallStatistics(self, taken or (perf_counter() - began,))
        return output


class CallStatistics:
    """``benchmark.stats`` as pytest-benchmark has it, with the fixture's own attributes."""

    def __init__(self, fixture: BenchmarkFixture, data: Sequence[float]) -> None:
        self.fixture, self.stats = fixture, SampleStatistics(data)
        self.iterations, self.options = 1, dict[str, Any]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fixture, name)

    def __getitem__(self, key: str) -> Any:
        return getattr(self.stats if hasattr(self.stats, key) else self, key)

    def as_dict(self, **_options: bool) -> dict[str, Any]:
        """Return the statistics and what identifies the test."""
        names = ("name", "fullname", "group", "params", "param", "extra_info")
        return {name: getattr(self, name) for name in names} | {"stats": self.stats.as_dict()}


class SampleStatistics:
    """Statistics of the recorded calls' times, in s, by pytest-benchmark's names."""

    fields = (
        *("min", "max", "mean", "stddev", "rounds", "median", "iqr", "q1", "q3", "iqr_outliers"),
        *("stddev_outliers", "outliers", "ld15iqr", "hd15iqr", "ops", "total"),
    )

    def __init__(self, data: Sequence[float]) -> None:
        self.data = list(data)
        self.sorted_data = sorted(data)
        self.min, self.max, self.total = min(data), max(data), sum(data)
        self.mean, self.median = statistics.fmean(data), statistics.median(data)
        self.rounds = len(data)
        self.stddev = statistics.stdev(data) if self.rounds > 1 else 0
        self.ops = self.rounds / self.total if self.total else 0
        self.q1, self.q3 = _quartile(self.sorted_data), _quartile(self.sorted_data[::-1])
        self.iqr = self.q3 - self.q1
        low, high = self.q1 - 1.5 * self.iqr, self.q3 + 1.5 * self.iqr
        self.ld15iqr = next(each for each in self.sorted_data if each >= low)
        self.hd15iqr = next(each for each in reversed(self.sorted_data) if each <= high)
        self.iqr_outliers = sum(not low <= each <= high for each in data)
        self.stddev_outliers = sum(abs(each - self.mean) > self.stddev for each in data)
        self.outliers = f"{self.stddev_outliers};{self.iqr_outliers}"

    def as_dict(self) -> dict[str, Any]:
        """Return all statistics by name."""
        return {name: getattr(self, name) for name in self.fields}


def _quartile(data: Sequence[float]) -> float:
    """Return the quartile of sorted ``data`` near its beginning, as pytest-benchmark does."""
    n, rest = divmod(len(data), 4)
    if len(data) == 1:
        return data[0]
    if rest == 1:
        return 0.25 * data[n - 1] + 0.75 * data[n]
    if rest == 3:
        return 0.75 * data[n] + 0.25 * data[n + 1]
    return statistics.median(data[: len(data) // 2])


@dataclass(slots=True)
class _PreparedCalls:
    """Calls of ``target``. If ``setup`` returns arguments, the next call is made with them."""

    target: Callable[..., Any]
    args: Sequence[Any]
    kwargs: dict[str, Any]
    setup: Callable[[], Any] | None
    teardown: Callable[..., Any] | None
    called: bool = False

    def call(self) -> Any:
        self.called = True
        return self.target(*self.args, **self.kwargs)

    def prepare(self) -> None:
        """Tear down after the last call, and set up the next call."""
        self.tear_down()
        if self.setup and (arguments := self.setup()):
            self.args, self.kwargs = arguments

    def tear_down(self) -> None:
        if self.called and self.teardown:
            self.teardown(*self.args, **self.kwargs)
        self.called = False
