"""Benchmarks from pytest's tests, chosen in a benchmark file. Also a plugin of pytest.

If ``pattern`` matches a file of tests, perfci reads the file as it is. A benchmark file next to the
tests can choose some of them::

    import perfci.pytest

    speed = perfci.pytest.benchmarks("test_speed.py")

A test that asks for the fixture ``benchmark`` is a case. perfci measures the function that the test
passes to the fixture, as pytest-benchmark does. A test marked ``@pytest.mark.perfci`` or
``@pytest.mark.benchmark`` is measured as a whole. Meanwhile the test's fixtures stay set up, and
its contexts stay open.

As a plugin of pytest, this module lets such a suite run as plain tests: if no plugin that measures
is installed, ``benchmark(function)`` calls the function once. The Python that measures needs
pytest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfci.suites.pytest.session import MEASURING, Fixtures, know_marks

if TYPE_CHECKING:
    from perfci.api.definition import Benchmark

__all__ = ["benchmarks"]


def benchmarks(*paths: str, tags: Sequence[str] = ()) -> tuple[Benchmark, ...]:
    """Return a benchmark for each measuring test of the files. Parameter sets are its axis.

    ``paths`` are relative to the calling file, and lie in its folder or below, because both sides
    run head's tests just as they run head's benchmarks. Raises BenchmarkError if a path lies
    elsewhere, or if none of their tests measures.
    """
    from perfci.api import files_below, user_frame
    from perfci.api.definition import DEFINED
    from perfci.errors import BenchmarkError
    from perfci.suites.pytest import benchmarks_of

    where = user_frame()
    file, _, line = where.rpartition(":")
    files = files_below(where, *paths)
    collected = benchmarks_of(files, Path.cwd())
    if not collected:
        raise BenchmarkError(
            "bad-benchmark",
            f"{where}: no test of {', '.join(paths)} measures",
            "A test measures what it calls by the fixture `benchmark`, or is marked "
            "@pytest.mark.perfci; `pytest --collect-only` shows what pytest finds.",
        )
    sources = tuple(map(str, files))
    chosen = tuple(
        replace(each, file=file, line=int(line), tags=(*each.tags, *tags), sources=sources)
        for each in collected
    )
    DEFINED.extend(chosen)
    return chosen


# The plugin of pytest, by which a suite runs as plain tests.


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks, and the fixture if no plugin that measures is installed."""
    know_marks(config)
    if not any(config.pluginmanager.hasplugin(name) for name in MEASURING):
        config.pluginmanager.register(Fixtures(), "perfci_once")
