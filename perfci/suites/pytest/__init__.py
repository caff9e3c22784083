"""Tests of pytest that measure: by pytest-benchmark or pytest-codspeed, or marked ``perfci``."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from perfci.api import fit_name
from perfci.api.definition import Benchmark
from perfci.errors import BenchmarkError
from perfci.model.worker import WorkOrder
from perfci.suites import FIXTURES, module_name

TOOL = ("_pytest", "pluggy", "iniconfig", "pytest")
NONE_THERE = (
    "pytest finds no test in it that uses the fixture `benchmark`. If the suite needs arguments of "
    'pytest, name them in [tool.perfci]: `pytest_args = ["-c", "benchmark.ini"]`.'
)
_NAMES = ("test_*.py", "*_test.py")
"""Patterns of the files that pytest collects by default."""
_FOLDERS = (
    *("benchmarks", "benchmark", "tests/benchmarks", "tests/benchmark"),
    *("bench", "perf", "performance", "tests/bench", "tests/perf", "tests/performance"),
)
"""Folders in which suites are looked for without configuration, before any other tests."""
_ASKS = re.compile(
    r"^[ \t]*(?:def \w+\([^)]*\bbenchmark\b|@pytest\.mark\.(?:benchmark|perfci)\b)",
    re.MULTILINE,
)
"""Matches a test that measures. Its file may have any name, as ``python_files`` allows."""
_MARKED = re.compile(r"\bmark\.(?:benchmark|perfci)\b")
"""Matches a decorator that marks a test to be measured as a whole."""


def holds(file: Path, root: Path, text: str) -> bool:
    """Return whether pytest would collect the file by its name, or it has tests that measure."""
    del root
    return any(fnmatch(file.name, name) for name in _NAMES) or _ASKS.search(text) is not None


def place(root: Path) -> tuple[str, str] | None:
    """Return a folder of benchmarks and the pattern of its files that measure, or None."""
    for folder in (*_FOLDERS, "tests", "test"):
        for name in _NAMES:
            files = [
                file
                for file in (root / folder).rglob(name)
                if file.is_file() and _ASKS.search(file.read_text("utf-8", errors="replace"))
            ]
            if files and folder in _FOLDERS:
                return folder, name
            if files:  # among tests that measure nothing
                return place_of(files, root, name.removeprefix("test_"))
    return None


def place_of(files: Sequence[Path], root: Path, end: str = "*.py") -> tuple[str, str]:
    """Return the folder around the files, and a pattern of their names that has this ``end``."""
    inner = Path(os.path.commonpath([file.parent for file in files]))
    names = sorted({file.name for file in files})
    alike = os.path.commonprefix(names)  # noqa: RUF071 (by characters, as meant)
    return inner.relative_to(root).as_posix(), names[0] if len(names) == 1 else alike + end


def benchmarks(file: Path, order: WorkOrder) -> tuple[Benchmark, ...]:
    """Return a benchmark for each test of the file that measures."""
    root = Path(order.root)
    if find_spec("pytest") is None:
        raise BenchmarkError(
            "no-pytest",
            f"{file.relative_to(root)} has tests of pytest, which {sys.executable} lacks",
            "Install it there, or name the Python that has it: `python` in [tool.perfci].",
        )
    return benchmarks_of((file,), root, order.suite_files)


def benchmarks_of(
    files: Sequence[Path], root: Path, others: Sequence[str] = ()
) -> tuple[Benchmark, ...]:
    """Return a benchmark for each test that measures, with parameter sets as axis ``params``.

    ``others`` are the benchmark files whose names have to differ.
    """
    from perfci.suites.pytest.session import Collection, run_test

    benchmarks = []
    for name, test in Collection(files, root, others).tests.items():
        axes = {"params": {label: label for label in test.labels}} if test.labels else {}
        benchmarks.append(
            Benchmark(
                name=name,
                function=partial(run_test, root, test.place),
                file=test.file,
                line=test.line,
                axes=axes,
                tags=(test.group,) if test.group else (),
                skip=partial(_skip, test.skips),
                hands_over=True,
            )
        )
    return tuple(benchmarks)


def written(file: Path, root: Path, text: str, files: Iterable[str]) -> Mapping[str, None]:
    """Return the names of the tests that measure and that the file's own text defines."""
    module = module_name(file, root, files)
    tests = _tests(ast.parse(text).body, (module,), marked=False)
    return dict.fromkeys(fit_name(".".join(test)) for test in tests)


def _tests(
    body: Sequence[ast.stmt], owners: tuple[str, ...], *, marked: bool
) -> Iterator[tuple[str, ...]]:
    """Yield the owners and the name of each test that measures. ``marked`` are the owners."""
    for each in body:
        if isinstance(each, (ast.ClassDef, ast.FunctionDef)):
            decorators = map(ast.unparse, each.decorator_list)
            is_marked = marked or any(map(_MARKED.search, decorators))
            if isinstance(each, ast.ClassDef):
                yield from _tests(each.body, (*owners, each.name), marked=is_marked)
            elif each.name.startswith(("test", "bench")) and (
                is_marked or not FIXTURES.isdisjoint(given.arg for given in each.args.args)
            ):
                yield *owners, each.name


def _skip(skips: dict[str, str], params: str = "") -> str | None:
    return skips.get(params)
