"""pytest's sessions in a worker: one lists the tests of files, another runs a test to measure it.

pytest itself collects the tests and makes the fixtures. This module imports pytest, which is
installed in the Python that measures.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from _pytest.skipping import evaluate_skip_marks

from perfci.collector import Work
from perfci.errors import Unusable
from perfci.suites import fit_label, fit_name
from perfci.suites.pytest import FIXTURES, module_name

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
    *(f"-pno:{plugin}" for plugin in (*MEASURING, *_DISTURBING, MARK)),
    *(f"-o{key}=false" for key in ("strict", "strict_config", "strict_markers")),
)
_SECTIONS = {
    "pytest.toml": None,
    ".pytest.toml": None,
    "pytest.ini": None,
    ".pytest.ini": None,
    "pyproject.toml": r"tool\.pytest",
    "tox.ini": "pytest",
    "setup.cfg": "tool:pytest",
}
"""pytest's configuration files, in its order. A file counts only with the section named here."""


def _options(folder: Path, root: Path) -> list[str]:
    """Return pytest's options for tests in ``folder`` of the tree ``root``.

    They keep pytest from looking for its configuration and for conftest.py above the tree.
    """
    own = _configuration(folder, root) or os.devnull
    return [*_OPTIONS, f"--confcutdir={root}", f"--rootdir={root}", "-c", str(own)]


def _configuration(folder: Path, root: Path) -> Path | None:
    """Return pytest's configuration file nearest to the tests, up to the root, or None."""
    inside = (place for place in (folder, *folder.parents) if place.is_relative_to(root))
    return next(filter(_configures, (place / name for place in inside for name in _SECTIONS)), None)


def _configures(path: Path) -> bool:
    section = _SECTIONS[path.name]
    if not path.is_file():
        return False
    text = path.read_text(encoding="utf-8", errors="replace")
    return section is None or re.search(rf"^\[{section}\b", text, re.MULTILINE) is not None


def know_marks(config: pytest.Config) -> None:
    """Register the marks that measure."""
    config.addinivalue_line("markers", f"{MARK}: perfci measures the whole test")
    config.addinivalue_line(
        "markers",
        "benchmark: pytest-benchmark's options; without its fixture, the whole test is measured",
    )


class _TestRun:
    """A plugin of a session: its options, and the first exception in it."""

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
        strangers = {*unknown, *_STRICTNESS, *known.file_or_dir} - {*self._places}
        args[:] = [word for word in args if word not in strangers]

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Keep the exception of a hook: a plugin's, a conftest.py's, or one of this class."""
        self.raised = self.raised or excinfo.value

    def pytest_configure(self, config: pytest.Config) -> None:
        know_marks(config)


@dataclass(slots=True)
class CollectedTest:
    """A test that measures. Each of its parameter sets has a place and a label.

    A place is pytest's id of the test. ``skips`` has the reasons of skipped places.
    """

    file: str
    line: int
    group: str
    places: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    skips: dict[str, str] = field(default_factory=dict)


class Collection(_TestRun):
    """The tests of some files that measure, by name."""

    def __init__(self, files: Sequence[Path], root: Path) -> None:
        super().__init__([str(file) for file in files])
        self.tests: dict[str, CollectedTest] = {}
        self._root = root
        self.run([*_options(files[0].parent, root), "--collect-only"])
        if self.raised:
            raise self.raised

    @pytest.fixture
    def benchmark(self) -> None:
        """Stand in for the fixture: pytest needs each fixture that a test asks for."""

    @pytest.fixture
    def codspeed_benchmark(self) -> None:
        """Stand in for the fixture, as ``benchmark`` does."""

    def pytest_exception_interact(self, call: pytest.CallInfo[Any]) -> None:
        """Keep the exception of an import, if a file can't be collected."""
        if call.excinfo and self.raised is None:
            error = call.excinfo.value
            self.raised = error.__cause__ or error

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the tests that measure."""
        for item in session.items:
            if isinstance(item, pytest.Function) and _measures(item):
                self._take(item)

    def _take(self, item: pytest.Function) -> None:
        _, line, _ = item.location
        inner = item.nodeid.partition("::")[2]
        name = ".".join((module_name(item.path), *inner.partition("[")[0].split("::")))
        _require_fixtures(item, name)
        test = self.tests.setdefault(
            fit_name(name), CollectedTest(str(item.path), (line or 0) + 1, _group(item))
        )
        place = f"{item.path}::{inner}"
        test.places.append(place)
        if parameters := getattr(item, "callspec", None):
            test.labels.append(fit_label(parameters.id, test.labels))
        if skip := evaluate_skip_marks(item):
            test.skips[place] = skip.reason or "marked as skipped"


def _measures(item: pytest.Function) -> bool:
    fixtures = not FIXTURES.isdisjoint(item.fixturenames)
    return fixtures or any(item.get_closest_marker(mark) for mark in (MARK, "benchmark"))


def _group(item: pytest.Function) -> str:
    mark = item.get_closest_marker("benchmark")
    group = mark.kwargs.get("group") if mark else None
    return fit_name(group) if isinstance(group, str) and group else ""


def _require_fixtures(item: pytest.Function, name: str) -> None:
    """Raise Unusable for a fixture that no conftest.py, plugin or module has."""
    known = item._fixtureinfo.name2fixturedefs  # noqa: SLF001 (pytest has no other way to ask)
    for fixture in item.fixturenames:
        if fixture not in known and fixture != "request" and not _is_parameter(item, fixture):
            raise Unusable(
                "no_fixture",
                f"{item.path}:{(item.location[1] or 0) + 1}: fixture '{fixture}' not found, which "
                f"{name} asks for. Write it in a conftest.py, or install the plugin that has it",
            )


def _is_parameter(item: pytest.Function, name: str) -> bool:
    return name in getattr(getattr(item, "callspec", None), "params", ())


def run_test(
    root: Path, go_on: Callable[[Work | Callable[..., Any]], None], *, params: str
) -> None:
    """Run the test at the place ``params``. Within it, call ``go_on`` with what it measures."""
    folder = Path(params.partition("::")[0]).parent
    running = _Running(params, go_on)
    running.run(_options(folder, root))
    if isinstance(running.raised, pytest.skip.Exception):
        raise Unusable("test_skipped", f"{params} was skipped: {running.raised}")
    if running.raised:
        raise running.raised
    if not running.went_on:
        raise Unusable("nothing_returned", f"{params} never called `benchmark`")


class _Running(_TestRun):
    """One test's run. It hands what the test measures over to the worker."""

    def __init__(self, place: str, go_on: Callable[[Any], None]) -> None:
        super().__init__([place])
        self._go_on = go_on
        self.went_on = False

    @pytest.fixture
    def benchmark(self) -> Call:
        """Return a fixture that measures the function passed to it."""
        return Call(self._measure)

    @pytest.fixture
    def codspeed_benchmark(self) -> Call:
        """Return a fixture that measures the function passed to it."""
        return Call(self._measure)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> object:
        """Measure a marked test as a whole. A test with a fixture that measures runs as usual."""
        if not FIXTURES.isdisjoint(pyfuncitem.fixturenames):
            return None
        parameters = inspect.signature(pyfuncitem.obj).parameters
        given = {
            name: pyfuncitem.funcargs[name] for name in parameters if name in pyfuncitem.funcargs
        }
        self._measure(partial(pyfuncitem.obj, **given))
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

    def _measure(self, work: Any) -> None:
        self.went_on = True
        try:
            self._go_on(work)
        except BaseException as error:
            self.raised = error
            raise


class Call:
    """The fixture. Options for timing have no effect. As in a dry run, there are no ``stats``."""

    stats = None
    disabled = True
    enabled = False

    def __init__(self, measure: Callable[[Any], None]) -> None:
        self._measure: Callable[[Any], None] | None = measure
        self.name = ""
        self.group: str | None = None
        self.extra_info: dict[str, Any] = {}

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Measure ``function(*args, **kwargs)``, then call it and return its result."""
        call = partial(function, *args, **kwargs) if args or kwargs else function
        self._hand_over(call)
        return call()

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
        self._hand_over(Work(calls.call, prepare=calls.prepare))
        calls.prepare()
        output = calls.call()
        calls.tear_down()
        return output

    def _hand_over(self, work: Any) -> None:
        if self._measure is None:
            raise RuntimeError("a test measures once: make another test of what else it calls")
        measure, self._measure = self._measure, None
        measure(work)


class _PreparedCalls:
    """Calls of ``target``. If ``setup`` returns arguments, the next call is made with them."""

    def __init__(
        self,
        target: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        setup: Callable[[], Any] | None,
        teardown: Callable[..., Any] | None,
    ) -> None:
        self._target, self._args, self._kwargs = target, tuple(args), kwargs
        self._setup, self._teardown = setup, teardown
        self._called = False

    def call(self) -> Any:
        self._called = True
        return self._target(*self._args, **self._kwargs)

    def prepare(self) -> None:
        """Tear down after the last call, and set up the next call."""
        self.tear_down()
        if self._setup and (arguments := self._setup()):
            self._args, self._kwargs = arguments

    def tear_down(self) -> None:
        if self._called and self._teardown:
            self._teardown(*self._args, **self._kwargs)
        self._called = False
