"""pytest's tests: pytest-benchmark's, pytest-codspeed's, and those that are marked ``perfci``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from perfci.api.definition import Benchmark
from perfci.errors import BenchmarkError

TOOL = ("_pytest", "pluggy", "iniconfig", "pytest")
_NAMES = ("test_*.py", "*_test.py")
_ASKS = re.compile(r"^[ \t]*def test\w*\([^)]*\bbenchmark\b", re.MULTILINE)
"""A test in a file of another name, as the option ``python_files`` allows."""


def holds(file: Path, root: Path, text: str) -> bool:
    """Return whether pytest would collect the file, by its name, or whether it has such tests."""
    del root
    return any(fnmatch(file.name, name) for name in _NAMES) or _ASKS.search(text) is not None


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
    """Return a benchmark for each test of the files that measures; parameter sets are its axis."""
    from perfci.suites.pytest.session import Collection, run_test

    return tuple(
        Benchmark(
            name=name,
            function=partial(run_test, root)
            if test.labels
            else partial(run_test, root, params=test.places[0]),
            axes={"params": tuple(test.places)} if test.labels else {},
            labels={"params": tuple(test.labels)} if test.labels else {},
            tags=(test.group,) if test.group else (),
            skip=partial(_skip, test.skips) if test.labels else test.skips.get(test.places[0]),
            timeout=None,
            thresholds={},
            metrics=None,
            file=test.file,
            line=test.line,
            hands_over=True,
        )
        for name, test in Collection(files, root).tests.items()
    )


def _skip(skips: dict[str, str], params: str) -> str | None:
    return skips.get(params)
