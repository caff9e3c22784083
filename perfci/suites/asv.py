"""Suites of asv: ``asv_runner`` discovers their benchmarks and sets them up, perfci measures.

asv's own options for timing (``repeat``, ``rounds``, ``sample_time``, ``warmup_time``,
``processes`` and ``timer``) have no effect. If a benchmark sets ``number``, perfci sets the
benchmark up again after that many calls.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from binascii import crc32
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from perfci.api import fit_label, fit_name
from perfci.api.children import how_it_ended, tied_command
from perfci.api.definition import Benchmark
from perfci.clock import perf_counter
from perfci.collector import ExtraMetric, Work
from perfci.errors import BenchmarkError, Unusable
from perfci.model.case import Metric
from perfci.model.worker import TEST_SKIPPED, WorkOrder

TOOL = ("asv_runner", "pympler")
NONE_THERE = "Begin a function's name with `time_`, `peakmem_`, `mem_` or `track_`."
_CONFIGURATIONS = ("asv.conf.json", "asv.conf.jsonc")
_DEEPEST = 3
"""Depth of the deepest folder in which asv's configuration is looked for."""
_TEXT = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
_COMMENTS = re.compile(rf"({_TEXT})|//[^\n]*|/\*.*?\*/", re.DOTALL)
_BEYOND_JSON = re.compile(rf"({_TEXT})|,(?=\s*[}}\]])|([A-Za-z_$][\w$]*)(?=\s*:)", re.DOTALL)
"""Matches a text, and what JSON5 allows: a comma at the end, and a name without quotes."""
_MEMORY = re.compile(r"^(Mem[A-Z_].+)|(mem_.+)$")
"""Names that asv_runner takes for benchmarks only if pympler is installed."""
_CACHE = "cache.pickle"
"""Name of the file with the value that ``setup_cache`` returned."""
_LEAST_TIMEOUT_S = 10.0
"""Least timeout of a worker's step. asv's covers calls only, a step also a start and a warm-up."""
_METRICS = {
    "PeakMemBenchmark": ("peak_host_memory",),
    "TimeBenchmark": None,
    "TimerawBenchmark": None,
}
"""perfci's metrics by kind of benchmark. None means all metrics; other kinds have none of them."""
_KINDS = {
    "time": "TimeBenchmark",
    "timeraw": "TimeBenchmark",
    "peakmem": "PeakMemBenchmark",
    "mem": "MemBenchmark",
    "track": "TrackBenchmark",
}
_KIND = re.compile(rf"({'|'.join(_KINDS)})_.")
_SIZE = Metric("object_size", "bytes", "exact", 0.05, "fail")
_VALUE = Metric("value", "", "exact", 0.05, "warn")
"""The value of a ``track_`` benchmark. asv takes a lower value for better, whatever it means."""
_UNITS = {"seconds": "s", "unit": ""}
_RUN = """\
import os, sys
from timeit import timeit
go, done, statement, setup, number = sys.argv[1:]
def turn():
    os.write(int(done), b".")
    os.read(int(go), 1)
    return 0.0
timeit(stmt=statement, setup=setup, number=int(number), timer=turn)
"""
"""The process's program. ``timeit`` reads its timer once the set-up is done, and again after the
statement. This timer reports each reading, and waits until it may go on.
"""
_Asv = Any
"""A benchmark of asv_runner's, which has no types."""


def holds(file: Path, root: Path, text: str) -> bool:
    """Return whether the file lies in the ``benchmark_dir`` of asv's nearest configuration."""
    del text
    suite = _suite_of(file.parent, root)
    return suite is not None and file.is_relative_to(suite)


def place(root: Path) -> tuple[str, str] | None:
    """Return the folder that asv's configuration names, nearest to the root."""
    for configuration in _configurations(root):
        suite = _named_folder(configuration)
        if suite.is_dir() and suite.is_relative_to(root):
            return suite.relative_to(root).as_posix(), "*.py"
    return None


def _suite_of(folder: Path, root: Path) -> Path | None:
    """Return the folder of benchmarks around ``folder`` that asv's configuration names."""
    configuration = _configuration_of(folder, root)
    return _named_folder(configuration) if configuration else None


@cache
def _configuration_of(folder: Path, root: Path) -> Path | None:
    """Return the configuration whose folder of benchmarks contains ``folder``, or None."""
    known = _configurations(root)
    return next((each for each in known if folder.is_relative_to(_named_folder(each))), None)


def _configurations(root: Path) -> tuple[Path, ...]:
    """Return asv's configurations, those near the root first."""
    patterns = ["*/" * depth + name for depth in range(_DEEPEST + 1) for name in _CONFIGURATIONS]
    return tuple(chain.from_iterable(sorted(root.glob(pattern)) for pattern in patterns))


def _named_folder(configuration: Path) -> Path:
    named = str(_read(configuration).get("benchmark_dir", "benchmarks"))
    return Path(os.path.normpath(configuration.parent / named))


def _read(configuration: Path) -> dict[str, Any]:
    """Return the content of asv's configuration, which is JSON5. It is empty if it is damaged."""

    def plain(match: re.Match[str]) -> str:
        text, name = match[1] or "", match[2]
        return json.dumps(name or text[1:-1]) if name or text.startswith("'") else text

    text = configuration.read_text(encoding="utf-8", errors="replace")
    text = _COMMENTS.sub(lambda match: match[1] or " ", text)
    try:
        content = json.loads(_BEYOND_JSON.sub(plain, text), strict=False)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _variables(configuration: Path | None, order: WorkOrder) -> dict[str, str]:
    """Return asv's environment variables, for a side that is installed in this Python."""
    content = _read(configuration) if configuration else {}
    return {
        "ASV_PROJECT": str(content.get("project", "")),
        "ASV_CONF_DIR": str(configuration.parent if configuration else order.root),
        "ASV_COMMIT": order.commit,
        "ASV_BUILD_DIR": str(Path(order.root, str(content.get("repo_subdir", "")))),
        "ASV_BUILD_CACHE_DIR": os.environ.get("TMPDIR", "/tmp"),  # noqa: S108 (the system's own)
        "ASV_ENV_NAME": f"existing-py{sys.executable.replace('/', '_')}",
        "ASV_ENV_TYPE": "existing",
        "ASV_ENV_DIR": sys.prefix,
    }


def benchmarks(file: Path, order: WorkOrder) -> tuple[Benchmark, ...]:
    """Return a benchmark for each of asv's benchmarks in the file, with its parameters as axes."""
    root = Path(order.root)
    suite = _suite_of(file.parent, root) or file.parent
    shown = f"{suite.relative_to(root)}/ is a suite of asv"
    _require("asv_runner", shown)
    from asv_runner.benchmarks._base import Benchmark as OfAnyKind

    if not hasattr(OfAnyKind, "set_cache"):
        raise BenchmarkError(
            "old-asv-runner",
            f"{shown}, and the asv_runner of {sys.executable} is too old",
            f"Install a newer one: `{sys.executable} -m pip install -U asv_runner`.",
        )
    os.environ |= _variables(_configuration_of(file.parent, root), order)
    module = import_module(_importable(file, suite))
    return tuple(_benchmark(asv, file) for asv in _discovered(module, file.relative_to(root)))


def _require(package: str, reason: str) -> None:
    if find_spec(package) is None:
        raise BenchmarkError(
            f"no-{package.replace('_', '-')}",
            f"{reason}, and {sys.executable} lacks {package}",
            f"Install it there: `{sys.executable} -m pip install {package}`. Or name the Python "
            "that has it: `python` in [tool.perfci].",
        )


def _importable(file: Path, suite: Path) -> str:
    """Return the name to import the file's module by, once asv's finder for it is installed.

    For asv, the suite's folder is a package that has the folder's name.
    """
    from asv_runner._aux import SpecificImporter

    finder = SpecificImporter(suite.name, str(suite.parent))
    known = [vars(other) for other in sys.meta_path if isinstance(other, SpecificImporter)]
    if vars(finder) not in known:
        sys.meta_path.insert(0, finder)
    parts = file.relative_to(suite).with_suffix("").parts
    return ".".join((suite.name, *(parts[:-1] if parts[-1] == "__init__" else parts)))


def _discovered(module: Any, shown: Path) -> Iterator[_Asv]:
    """Yield the module's benchmarks as asv_runner makes them of its functions and methods."""
    from asv_runner.discovery import _get_benchmark

    for owner, name, function in _functions(module):
        if _MEMORY.match(getattr(function, "benchmark_name", name).rpartition(".")[2]):
            _require("pympler", f"{shown} measures the size of objects (`{name}`)")
        asv = _get_benchmark(name, module, owner, function)
        if asv is not None:
            yield asv


def _functions(module: Any) -> Iterator[tuple[type | None, str, Any]]:
    """Yield each function or method that may be a benchmark: its class if any, name, function."""
    for name, value in tuple(vars(module).items()):
        if name.startswith("_"):
            continue
        if inspect.isclass(value) and not inspect.isabstract(value):
            for inner, member in inspect.getmembers(value):
                if inspect.isfunction(member) or inspect.ismethod(member):
                    yield value, inner, member
        elif inspect.isfunction(value):
            yield None, name, value


def written(
    file: Path, root: Path, text: str, files: Iterable[str]
) -> Mapping[str, tuple[str, ...] | None]:
    """Return the benchmarks that the file's own text defines in asv's form, with their metrics."""
    del files
    suite = _suite_of(file.parent, root) or file.parent
    parts = file.relative_to(suite).with_suffix("").parts
    module = parts[:-1] if parts[-1] == "__init__" else parts
    body = ast.parse(text).body
    classes = [each for each in body if isinstance(each, ast.ClassDef)]
    scopes = (((), body), *(((each.name,), each.body) for each in classes))
    functions = (
        (owner, each.name)
        for owner, statements in scopes
        for each in statements
        if isinstance(each, ast.FunctionDef)
    )
    return {
        fit_name(".".join((*module, *owner, name))): _METRICS.get(_KINDS[kind[1]], ())
        for owner, name in functions
        if (kind := _KIND.match(name))
    }


def _benchmark(asv: _Asv, file: Path) -> Benchmark:
    names = _labels(asv.param_names)
    return Benchmark(
        name=fit_name(asv.name),
        function=partial(_hand_over, asv, names),
        axes={
            name: {label: index for index, label in enumerate(_labels(texts))}
            for name, texts in zip(names, asv.params, strict=True)
        },
        skip=partial(_skip, asv, names),
        timeout=max(float(asv.timeout), _LEAST_TIMEOUT_S) if asv.timeout else None,
        metrics=_METRICS.get(type(asv).__name__, ()),
        file=str(file),
        line=_line(asv.func),
        hands_over=True,
    )


def _labels(texts: Sequence[str]) -> tuple[str, ...]:
    labels: list[str] = []
    for text in texts:
        labels.append(fit_label(text.strip("'"), labels))
    return tuple(labels)


def _line(function: Any) -> int:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return int(code.co_firstlineno) if code else 1


def _values(asv: _Asv, names: Sequence[str], indexes: Mapping[str, int]) -> tuple[Any, ...]:
    choices = asv._params  # noqa: SLF001 (`params` has their texts)
    return tuple(values[indexes[name]] for name, values in zip(names, choices, strict=True))


def _skip(asv: _Asv, names: Sequence[str], **indexes: int) -> str | None:
    skipped = _values(asv, names, indexes) in asv._skip_tuples  # noqa: SLF001 (as asv_runner does)
    return "the suite skips these parameters" if skipped else None


# A case runs in a temporary folder of its own, as under asv.


def _hand_over(
    asv: _Asv, names: Sequence[str], measure_work: Callable[[Work], None], /, **indexes: int
) -> None:
    """Set up the case with these parameters, have its work measured, and tear it down."""
    asv._current_params = _values(asv, names, indexes)  # noqa: SLF001 (set_param_idx counts)
    spared_s = 0.0
    folder = tempfile.mkdtemp(prefix="asv-")
    if asv.setup_cache_key is not None:
        cache, spared_s = _cached(asv)
        shutil.copytree(cache, folder, dirs_exist_ok=True)
        asv.set_cache(pickle.loads((cache / _CACHE).read_bytes()))  # noqa: S301 (made by this side)
    os.chdir(folder)
    try:
        for setup in asv._setups:  # noqa: SLF001 (do_setup keeps the reason to itself)
            setup(*asv._build_params())  # noqa: SLF001
    except NotImplementedError as error:
        raise Unusable(TEST_SKIPPED, f"its setup raised {error!r}") from error
    with ExitStack() as stack:
        stack.callback(asv.do_teardown)
        try:
            measure_work(replace(_work(asv, stack), spared_s=spared_s))
        except NotImplementedError as error:
            if type(error).__name__ == "SkipNotImplemented":
                raise Unusable(TEST_SKIPPED, f"it skipped itself: {error}") from error
            raise


def _cached(asv: _Asv) -> tuple[Path, float]:
    """Return the folder with the result of ``setup_cache``, and the time in s to make it now.

    The first worker of a side that needs the result makes it. Later workers of the session read it,
    and their time is 0.
    """
    name = f"asv-cache-{crc32(asv.setup_cache_key.encode()):08x}"
    folder = Path(tempfile.gettempdir(), name)
    if folder.exists():
        return folder, 0.0
    began = perf_counter()
    making = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    os.chdir(making)
    made = asv.do_setup_cache()
    (making / _CACHE).write_bytes(pickle.dumps(made))
    making.rename(folder)
    return folder, perf_counter() - began


def _work(asv: _Asv, stack: ExitStack) -> Work:
    """Return the work of a benchmark that is set up. ``stack`` closes what the work opens."""
    kind, arguments = type(asv).__name__, asv._build_params()  # noqa: SLF001 (as asv_runner does)
    if kind == "TimerawBenchmark":
        return _in_fresh_python(asv, arguments, stack)
    if kind in _METRICS:
        call = partial(asv.func, *arguments) if arguments else asv.func
        renewing = kind == "TimeBenchmark" and asv.number
        return Work(call, prepare=_Renewal(asv).prepare if renewing else None)

    @cache  # later calls return the first call's value
    def once() -> Any:
        value = asv.run(*arguments)
        return math.nan if value is None else value

    unit = _UNITS.get(asv.unit, str(asv.unit)[:50])
    metric = _SIZE if kind == "MemBenchmark" else replace(_VALUE, unit=unit)
    return Work(once, metrics=(ExtraMetric(metric, once),))


def _in_fresh_python(asv: _Asv, arguments: Sequence[Any], stack: ExitStack) -> Work:
    made = asv.func(*arguments)
    statement, setup = map(textwrap.dedent, made if isinstance(made, tuple) else (made, ""))
    extra = getattr(asv, "_timeraw_env", None) or {}
    python = _FreshPython(statement, setup, asv.number, extra)
    stack.callback(python.close)
    return Work(python.call, prepare=python.prepare, items=asv.number if asv.number > 1 else None)


class _Renewal:
    """Sets the benchmark up again after every ``number`` calls, as the suite asks for."""

    def __init__(self, asv: _Asv) -> None:
        self._asv, self._calls = asv, 0

    def prepare(self) -> None:
        if self._calls >= self._asv.number:
            self._asv.do_teardown()
            self._asv.do_setup()
            self._calls = 0
        self._calls += 1


class _FreshPython:
    """Runs a statement ``number`` times per call. Each call has a fresh process, already set up."""

    def __init__(self, statement: str, setup: str, number: int, extra: Mapping[str, str]) -> None:
        self._arguments = (statement, setup, str(number))
        self._environment = {**os.environ, **extra}
        self._process: subprocess.Popen[bytes] | None = None
        self._go = self._done = -1

    def prepare(self) -> None:
        """Start the process, and wait until its set-up is done."""
        self.close()
        go, self._go = os.pipe()
        self._done, done = os.pipe()
        self._process = subprocess.Popen(
            tied_command([sys.executable, "-c", _RUN, str(go), str(done), *self._arguments]),
            stdin=subprocess.DEVNULL,
            env=self._environment,
            pass_fds=(go, done),
        )
        os.close(go)
        os.close(done)
        self._await("the set-up of the statement")

    def call(self) -> None:
        """Have the process run the statement, and wait until it has."""
        os.write(self._go, b".")
        self._await("the statement")

    def _await(self, what: str) -> None:
        if not os.read(self._done, 1) and self._process:
            ended = how_it_ended(self._process.wait())
            raise Unusable("process_ended", f"{what} {ended}; the worker's log says why")

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.kill()
            self._process.wait()
            os.close(self._go)
            os.close(self._done)
            self._process = None
