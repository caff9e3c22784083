"""Importing benchmark files by path, each under a name of its own."""

from __future__ import annotations

import importlib.util
import os
import sys
from itertools import chain
from pathlib import Path
from types import ModuleType

from perfci.api.definition import Benchmark
from perfci.worker.spawned import PREFIX, name_of


def prepare_path(python_path: tuple[str, ...]) -> None:
    """Put the side's folders first on ``sys.path``."""
    sys.path[:] = [*python_path, *(folder for folder in sys.path if folder not in python_path)]


def load(file: str, python_path: tuple[str, ...]) -> ModuleType:
    """Import one benchmark file; its folder, after the side's own, serves its imports."""
    folder = str(Path(file).parent)
    if folder not in sys.path:
        last = max((sys.path.index(one) for one in python_path if one in sys.path), default=-1)
        sys.path.insert(last + 1, folder)
    name = name_of(file)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up here
    spec.loader.exec_module(module)
    return module


def forget_neighbours(folder: str) -> None:
    """Forget what was imported from beside a benchmark file: another folder has its own."""
    sys.path.remove(folder)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        ours = name.startswith(PREFIX)
        if file and "." not in name and not ours and Path(file).parent == Path(folder):
            del sys.modules[name]


def benchmarks_in(module: ModuleType) -> tuple[Benchmark, ...]:
    """Return the benchmarks that the module's own file defines, in the order of their lines.

    It may have them one by one, or several as a tuple.
    """
    here = os.path.realpath(module.__file__ or "")
    values = [value if isinstance(value, tuple) else (value,) for value in vars(module).values()]
    own = {
        id(value): value
        for value in chain.from_iterable(values)
        if isinstance(value, Benchmark) and os.path.realpath(value.file) == here
    }
    return tuple(sorted(own.values(), key=lambda benchmark: benchmark.line))
