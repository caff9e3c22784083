"""Imports benchmark files as modules, and sets up the work of an order's case.

With ``spawn`` and ``forkserver``, ``multiprocessing`` starts a fresh Python. This runs the main
file of the process that asked for it, and imports the modules of the objects it is sent. A worker's
main file is ``bootstrap.py``. Its benchmark's module has a name that no folder's file has, so
``BenchmarkFinder`` finds it.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from binascii import crc32
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from perfci.api.definition import DEFINED, Benchmark
from perfci.collector import Work
from perfci.errors import Unusable
from perfci.metrics import METRICS, ExtraMetric
from perfci.model.worker import WorkOrder
from perfci.suites import PYTEST_ARGUMENTS, SuiteForm, form_of

PREFIX = "perfci_benchmarks_"
"""Prefix of the name of the module that a benchmark file is imported as."""
_DOT = "__dot__"
"""Stands for a dot of the file's name in the module's name."""
_NUMPY_SEEDS = 1 << 32
"""Number of seeds that numpy takes, from 0 on."""
_DIGITS = 8
"""Digits of the checksum at the end of the module's name."""


def prepare_path(python_path: tuple[str, ...]) -> None:
    """Put the side's folders first on ``sys.path``."""
    sys.path[:] = [*python_path, *(folder for folder in sys.path if folder not in python_path)]


def load(file: str, python_path: tuple[str, ...]) -> tuple[Benchmark, ...]:
    """Import one benchmark file, and return the benchmarks it defines, in the order of their lines.

    Its folder comes on ``sys.path``, after the side's own folders.
    """
    folder = str(Path(file).parent)
    if folder not in sys.path:
        last = max(
            (sys.path.index(entry) for entry in python_path if entry in sys.path), default=-1
        )
        sys.path.insert(last + 1, folder)
    name = name_of(file)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up here
    earlier = len(DEFINED)
    spec.loader.exec_module(module)
    here = os.path.realpath(file)
    own = (each for each in DEFINED[earlier:] if os.path.realpath(each.file) == here)
    return tuple(sorted(own, key=lambda benchmark: benchmark.line))


def forget_neighbours(folder: str) -> None:
    """Forget the modules of a benchmark file's folder. Another folder may use the same names."""
    sys.path.remove(folder)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        ours = name.startswith(PREFIX)
        if file and "." not in name and not ours and Path(file).parent == Path(folder):
            del sys.modules[name]


def name_of(file: str) -> str:
    """Return the name of a benchmark file's module: its file's name, and a checksum of its path.

    The checksum tells files of the same name in two folders apart.
    """
    stem = file.rpartition("/")[2].removesuffix(".py")
    return f"{PREFIX}{stem.replace('.', _DOT)}_{crc32(file.encode()):0{_DIGITS}x}"


class BenchmarkFinder:
    """Finds a benchmark's module by its name, in the folders of ``sys.path``.

    A spawned process has its parent's ``sys.path``, with the folders of imported benchmark files.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the module's spec, or None if ``name`` isn't a benchmark file's module."""
        del path, target
        if not name.startswith(PREFIX):
            return None
        stem = name[len(PREFIX) : -_DIGITS - 1].replace(_DOT, ".")
        for folder in sys.path:
            file = f"{folder}/{stem}.py"
            if name_of(file) == name and os.path.isfile(file):  # noqa: PTH113 (pathlib takes 5 ms)
                return spec_from_file_location(name, file)
        return None


def benchmarks_of(file: str, order: WorkOrder, form: SuiteForm | None) -> tuple[Benchmark, ...]:
    """Import a benchmark file of perfci's form, or of a suite's ``form``. Return its benchmarks."""
    PYTEST_ARGUMENTS[:] = order.pytest_args
    if form:
        return form.benchmarks(Path(file), order)
    return load(file, order.python_path)


def imported(order: WorkOrder) -> tuple[Benchmark, ...]:
    """Import the order's benchmark file and return its benchmarks.

    What the file draws as it is imported, both sides draw alike.
    """
    seed_random(order.seed)
    return benchmarks_of(order.benchmark_file, order, form_of(order.benchmark_file, order.root))


def seed_random(seed: int) -> None:
    """Seed Python's generator, torch's if it is imported, and numpy's now or when it is imported.

    A torch that is imported later begins with its default seed, which is always the same.
    """
    random.seed(seed)
    numpy, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
    if numpy is not None:
        numpy.seed(seed % _NUMPY_SEEDS)
    elif not any(isinstance(finder, _NumpySeeder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _NumpySeeder(seed % _NUMPY_SEEDS))
    if torch is not None:
        torch.manual_seed(seed)


class _NumpySeeder:
    """A finder that seeds numpy's generator as soon as numpy is imported."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return None, or for ``numpy.random`` the other finders' spec, whose loader then seeds."""
        del path, target
        if name != "numpy.random":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = spec.loader if spec else None
        if loader:
            execute = loader.exec_module

            def execute_and_seed(module: ModuleType) -> None:
                execute(module)
                module.seed(self._seed)

            loader.exec_module = execute_and_seed
        return spec


MeasureWork = Callable[[Work], Sequence[float]]
"""The rest of the worker's task, called with the work once it is set up.

It returns the times of the recorded calls, in s.
"""


def set_up(order: WorkOrder, benchmarks: Sequence[Benchmark], measure_work: MeasureWork) -> None:
    """Set up the order's case, and call ``measure_work`` with its work.

    It is a continuation, because a benchmark that hands its work over calls it from its own frames,
    while its contexts are open.
    """
    cases = {point.id: (each, point) for each in benchmarks for point in each.points()}
    if order.case not in cases:
        raise Unusable("no_such_case", f"`{order.case}` is not in {order.benchmark_file}")
    benchmark, point = cases[order.case]
    if benchmark.hands_over:
        benchmark.function(lambda made: measure_work(_work(made)), **point.values)
    else:
        measure_work(_work(_checked(benchmark, benchmark.function(**point.values))))


def _checked(benchmark: Benchmark, made: Any) -> Any:
    first = made[0] if isinstance(made, tuple) and made else made
    if isinstance(first, Work) or callable(first):
        return made
    what = "nothing" if made is None else repr(made)[:80]
    raise Unusable(
        "nothing_returned" if made is None else "not_callable",
        f"{benchmark.file}:{benchmark.line}: `{benchmark.name}` returned {what}; return the "
        "callable to measure: `return lambda: model(x)`, or perfci.inference(model, x)",
    )


def _work(made: Any) -> Work:
    """Return the work, with the metrics that the benchmark returned next to its callable."""
    call, *extras = made if isinstance(made, tuple) else (made,)
    work = call if isinstance(call, Work) else Work(call)
    metrics = (*work.metrics, *extras)
    taken = set(METRICS)
    for extra in metrics:
        if not isinstance(extra, ExtraMetric):
            raise Unusable(
                "not_a_metric",
                f"{repr(extra)[:80]} was returned with the work and isn't a perfci.metric(...)",
            )
        name = extra.metric.name
        if name in taken:
            raise Unusable("metric_name", f"a metric can't be called {name!r}: that name is taken")
        taken.add(name)
    return replace(work, metrics=metrics)
