"""pytest's tests as benchmarks, as they are: what they call by ``benchmark``, or marked ``perfci``.

In a benchmark file next to the tests (``[tool.perfci] benchmarks = "tests"``)::

    import perfci.pytest

    speed = perfci.pytest.benchmarks("test_speed.py")

A test that asks for the fixture ``benchmark`` is a case, and measured is what it calls by it, as
with pytest-benchmark; one marked ``@pytest.mark.perfci`` is measured as a whole. Its fixtures, and
what it holds open, stay as they are meanwhile.

As a plugin of pytest this lets such a suite run as tests: where no plugin that measures is
installed, ``benchmark(function)`` calls it once. The Python that measures needs pytest.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from perfci.api.definition import Benchmark

__all__ = ["benchmarks"]

_MARK = "perfci"
_MEASURING = ("benchmark", "codspeed")
"""The plugins that have a fixture ``benchmark`` of their own."""
_SLOWS = ("cacheprovider", "faulthandler", "logging", "warnings", "xdist")
_OPTIONS = (
    "-q",
    "--capture=no",
    "--assert=plain",
    "--import-mode=importlib",  # with any other, head's folders would come first on base's path
    *(f"-pno:{plugin}" for plugin in (*_MEASURING, *_SLOWS, _MARK)),
    *("-o", "addopts="),
    *("-o", "pythonpath="),
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
"""pytest's files of configuration, in its order, each with the section that makes it one."""
_UNFIT = re.compile(r"[^A-Za-z0-9_.+\-]+")
_LONGEST_LABEL = 60


def benchmarks(*paths: str, tags: Sequence[str] = ()) -> tuple[Benchmark, ...]:
    """Return a benchmark for each test of these files that measures; parameter sets are its axis.

    ``paths`` are relative to the calling file, in its folder or below: both sides run head's tests,
    as they run head's benchmarks. BenchmarkError where they lie elsewhere, where pytest can't
    collect them, or where none of their tests measures.
    """
    from perfci.api import user_frame
    from perfci.api.definition import Benchmark
    from perfci.errors import BenchmarkError

    where = user_frame()
    file, _, line = where.rpartition(":")
    folder = Path(file).parent.resolve()
    files = tuple(str((folder / path).resolve()) for path in paths)
    for path, place in zip(paths, files, strict=True):
        if not Path(place).is_relative_to(folder):
            raise BenchmarkError(
                "tests-elsewhere",
                f"{where}: {path} lies outside of {folder.name}/",
                "Both sides run head's files of one folder: put this file next to the tests, and "
                'write benchmarks = "tests" below [tool.perfci].',
            )
    collecting = _Collecting()
    pytest.main([*_options(folder), "--collect-only", *files], [collecting])
    if collecting.problem or not collecting.tests:
        raise BenchmarkError(
            "no-tests",
            f"{where}: {collecting.problem or 'no test of ' + ', '.join(paths) + ' measures'}",
            "A test measures what it calls by the fixture `benchmark`, or is marked "
            "@pytest.mark.perfci; `pytest --collect-only` shows what pytest finds.",
        )
    return tuple(
        Benchmark(
            name=name,
            function=partial(_measured, folder)
            if labels
            else partial(_measured, folder, params=places[0]),
            axes={"params": tuple(places)} if labels else {},
            labels={"params": tuple(labels)} if labels else {},
            tags=tuple(tags),
            skip=None,
            timeout=None,
            thresholds={},
            metrics=None,
            file=file,
            line=int(line),
            hands_over=True,
            sources=files,
        )
        for name, (places, labels) in collecting.tests.items()
    )


def _options(folder: Path) -> list[str]:
    """Return pytest's options for tests in ``folder``, which is head's, on either side.

    Left alone, pytest looks for its configuration above the tests, in head's tree on both sides.
    """
    own = _configuration(folder, Path.cwd()) or os.devnull
    return [*_OPTIONS, f"--confcutdir={folder}", f"--rootdir={Path.cwd()}", "-c", str(own)]


def _configuration(folder: Path, root: Path) -> Path | None:
    """Return the configuration of the tests' folder, else the next above it in the side's tree."""
    shared = Path(os.path.commonpath((root, folder)))
    inner = folder.relative_to(shared).parts
    here = root.joinpath(*(inner if shared == root else inner[1:]))
    above = (here, *here.parents) if here == root else here.parents
    inside = (place for place in above if place.is_relative_to(root))
    places = (place / name for place in (folder, *inside) for name in _SECTIONS)
    return next(filter(_configures, places), None)


def _configures(path: Path) -> bool:
    section = _SECTIONS[path.name]
    if not path.is_file():
        return False
    text = path.read_text(encoding="utf-8", errors="replace")
    return section is None or re.search(rf"^\[{section}\b", text, re.MULTILINE) is not None


class _Collecting:
    """The tests that measure, by name: the place of each parameter set, and its label if any."""

    def __init__(self) -> None:
        self.tests: dict[str, tuple[list[str], list[str]]] = {}
        self.problem = ""

    def pytest_configure(self, config: pytest.Config) -> None:
        _know_marks(config)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            last = (report.longreprtext.strip().splitlines() or ["?"])[-1]
            self.problem = f"pytest can't collect {report.nodeid}: {last}"

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            if not isinstance(item, pytest.Function) or not _measures(item):
                continue
            inner = item.nodeid.partition("::")[2]
            name = ".".join((item.path.stem, *inner.partition("[")[0].split("::")))
            places, labels = self.tests.setdefault(_UNFIT.sub("_", name), ([], []))
            places.append(f"{item.path}::{inner}")
            if parameters := getattr(item, "callspec", None):
                labels.append(_label(parameters.id, labels))


def _measures(item: pytest.Function) -> bool:
    return "benchmark" in item.fixturenames or item.get_closest_marker(_MARK) is not None


def _label(text: str, taken: Sequence[str]) -> str:
    """Return the label of a parameter set; those that would be alike get a number."""
    label = _UNFIT.sub("_", text)[:_LONGEST_LABEL] or "_"
    if label not in taken:
        return label
    end = f"-{len(taken) + 1}"
    return label[: _LONGEST_LABEL - len(end)] + end


def _measured(folder: Path, go_on: Callable[[Any], None], *, params: str) -> None:
    """Run one test, by its place, and go on with the call it measures from within the test."""
    from perfci.errors import Unusable

    running = _Running(go_on)
    pytest.main([*_options(folder), params], [running])
    if isinstance(running.raised, pytest.skip.Exception):
        raise Unusable("test_skipped", f"{params} was skipped: {running.raised}")
    if running.raised:
        raise running.raised
    if not running.went_on:
        raise Unusable("nothing_returned", f"{params} never called `benchmark`")


class _Running:
    """One test's run; what it measures goes on to the worker."""

    def __init__(self, go_on: Callable[[Any], None]) -> None:
        self._go_on = go_on
        self.went_on = False
        self.raised: BaseException | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        _know_marks(config)

    @pytest.fixture
    def benchmark(self) -> Call:
        """Measure what it is called with."""
        return Call(self._measure)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> object:
        """Measure the whole of a test that is marked."""
        if "benchmark" in pyfuncitem.fixturenames:
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
        """Keep what was raised first: in a fixture, the test, the worker, or at the end."""
        report = yield
        if call.excinfo and self.raised is None:
            self.raised = call.excinfo.value
            if isinstance(self.raised, pytest.FixtureLookupError):
                self.raised = LookupError(self.raised.formatrepr().errorstring.splitlines()[0])
        return report

    def _measure(self, call: Callable[[], Any]) -> None:
        self.went_on = True
        try:
            self._go_on(call)
        except BaseException as error:
            self.raised = error
            raise


class Call:
    """pytest-benchmark's fixture, as far as calls go; its options of timing have no effect."""

    def __init__(self, measure: Callable[[Callable[[], Any]], None]) -> None:
        self._measure: Callable[[Callable[[], Any]], None] | None = measure
        self.group: str | None = None
        self.extra_info: dict[str, Any] = {}

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Measure ``function(*args, **kwargs)``, and return what a call of it returns."""
        if self._measure is None:
            raise RuntimeError("a test measures once: make another test of what else it calls")
        call = partial(function, *args, **kwargs) if args or kwargs else function
        measure, self._measure = self._measure, None
        measure(call)
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
        """Measure the target; ``rounds`` and their like are perfci's own affair.

        RuntimeError for ``setup`` and ``teardown``: calls follow each other, nothing in between.
        """
        if setup or teardown:
            raise RuntimeError(
                "benchmark.pedantic(setup=…, teardown=…) can't be measured: calls follow each "
                "other with nothing in between. Make the input in the test, or in the target"
            )
        return self(target, *args, **(kwargs or {}))


# As a plugin: the suite runs as tests.


def pytest_configure(config: pytest.Config) -> None:
    """Know the mark, and have the fixture where no plugin that measures is installed."""
    _know_marks(config)
    if not any(config.pluginmanager.hasplugin(name) for name in _MEASURING):
        config.pluginmanager.register(_Once(), "perfci_once")


class _Once:
    @pytest.fixture
    def benchmark(self) -> Call:
        """Call once what it is called with."""
        return Call(lambda _call: None)


def _know_marks(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_MARK}: perfci measures the whole test")
    config.addinivalue_line("markers", "benchmark: pytest-benchmark's options; no effect in perfci")
