"""Tests of pytest that measure: by pytest-benchmark or pytest-codspeed, or marked ``perfci``."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from perfci.api.definition import Benchmark
from perfci.errors import BenchmarkError
from perfci.suites import fit_name

TOOL = ("_pytest", "pluggy", "iniconfig", "pytest")
_NAMES = ("test_*.py", "*_test.py")
"""Patterns of the files that pytest collects by default."""
_FOLDERS = ("benchmarks", "benchmark", "tests/benchmarks", "tests/benchmark")
"""Folders in which suites are looked for without configuration."""
_ASKS = re.compile(
    r"^[ \t]*(?:def test\w*\([^)]*\bbenchmark\b|@pytest\.mark\.(?:benchmark|perfci)\b)",
    re.MULTILINE,
)
"""Matches a test that measures. Its file may have any name, as ``python_files`` allows."""
_MARKED = re.compile(r"\bmark\.(?:benchmark|perfci)\b")
"""Matches a decorator that marks a test to be measured as a whole."""
FIXTURES = frozenset({"benchmark", "codspeed_benchmark"})
"""The fixtures that measure."""


def holds(file: Path, root: Path, text: str) -> bool:
    """Return whether pytest would collect the file by its name, or it has tests that measure."""
    del root
    return any(fnmatch(file.name, name) for name in _NAMES) or _ASKS.search(text) is not None


def place(root: Path) -> tuple[str, str] | None:
    """Return a folder of benchmarks and the pattern of its files that measure, or None."""
    for folder in _FOLDERS:
        for name in _NAMES:
            files = sorted((root / folder).rglob(name))
            if any(_ASKS.search(file.read_text("utf-8", errors="replace")) for file in files):
                return folder, name
    return None


def benchmarks(file: Path, root: Path) -> tuple[Benchmark, ...]:
    """Return a benchmark for each test of the file that measures."""
    if find_spec("pytest") is None:
        raise BenchmarkError(
            "no-pytest",
            f"{file.relative_to(root)} has tests of pytest, and {sys.executable} has no pytest",
            "Install it there, or name the Python that has it: `python` in [tool.perfci].",
        )
    return benchmarks_of((file,), root)


def benchmarks_of(files: Sequence[Path], root: Path) -> tuple[Benchmark, ...]:
    """Return a benchmark for each test that measures, with parameter sets as axis ``params``."""
    from perfci.suites.pytest.session import Collection, run_test

    return tuple(
        Benchmark(
            name=name,
            function=partial(run_test, root, test.place),
            axes={"params": tuple(test.labels)} if test.labels else {},
            labels={"params": tuple(test.labels)} if test.labels else {},
            tags=(test.group,) if test.group else (),
            skip=partial(_skip, test.skips),
            timeout=None,
            thresholds={},
            metrics=None,
            file=test.file,
            line=test.line,
            hands_over=True,
        )
        for name, test in Collection(files, root).tests.items()
    )


def written(file: Path, root: Path, text: str) -> Mapping[str, None]:
    """Return the names of the tests that measure and that the file's own text defines."""
    del root
    names = (
        ".".join((module_name(file), *owners, function.name))
        for owners, function, marked in _functions(ast.parse(text).body)
        if function.name.startswith("test") and (marked or _asks(function))
    )
    return dict.fromkeys(map(fit_name, names))


def _functions(
    body: Sequence[ast.stmt], owners: tuple[str, ...] = (), *, marked: bool = False
) -> Iterator[tuple[tuple[str, ...], ast.FunctionDef, bool]]:
    """Yield each function with the classes around it, and whether it or one of these is marked."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            inner = (*owners, statement.name)
            yield from _functions(statement.body, inner, marked=marked or _is_marked(statement))
        elif isinstance(statement, ast.FunctionDef):
            yield owners, statement, marked or _is_marked(statement)


def _is_marked(definition: ast.ClassDef | ast.FunctionDef) -> bool:
    return any(_MARKED.search(ast.unparse(each)) for each in definition.decorator_list)


def _asks(function: ast.FunctionDef) -> bool:
    return not FIXTURES.isdisjoint(each.arg for each in function.args.args)


def module_name(file: Path) -> str:
    """Return the name of the file's module, with the names of the packages around it."""
    packages: list[str] = []
    folder = file.parent
    while (folder / "__init__.py").is_file():
        packages.insert(0, folder.name)
        folder = folder.parent
    return ".".join((*packages, file.stem))


def _skip(skips: dict[str, str], params: str = "") -> str | None:
    return skips.get(params)
