"""pytest's tests as benchmarks, named in a benchmark file; and a plugin of pytest.

A file of tests is read as it is where ``pattern`` names it. In a benchmark file next to the tests,
some of them can be chosen::

    import perfci.pytest

    speed = perfci.pytest.benchmarks("test_speed.py")

A test that asks for the fixture ``benchmark`` is a case, and measured is what it calls by it, as
with pytest-benchmark; one marked ``@pytest.mark.perfci`` or ``@pytest.mark.benchmark`` is measured
as a whole. Its fixtures, and what it holds open, stay as they are meanwhile.

As a plugin of pytest this lets such a suite run as tests: where no plugin that measures is
installed, ``benchmark(function)`` calls it once. The Python that measures needs pytest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfci.suites.pytest.calls import MEASURING, Call, know_marks

if TYPE_CHECKING:
    from perfci.api.definition import Benchmark

__all__ = ["benchmarks"]


def benchmarks(*paths: str, tags: Sequence[str] = ()) -> tuple[Benchmark, ...]:
    """Return a benchmark for each test of these files that measures; parameter sets are its axis.

    ``paths`` are relative to the calling file, in its folder or below: both sides run head's tests,
    as they run head's benchmarks. BenchmarkError where they lie elsewhere, where pytest can't
    collect them, or where none of their tests measures.
    """
    from perfci.api import user_frame
    from perfci.errors import BenchmarkError
    from perfci.suites.pytest import benchmarks_of

    where = user_frame()
    file, _, line = where.rpartition(":")
    folder = Path(file).parent.resolve()
    files = tuple((folder / path).resolve() for path in paths)
    for path, place in zip(paths, files, strict=True):
        if not place.is_relative_to(folder):
            raise BenchmarkError(
                "tests-elsewhere",
                f"{where}: {path} lies outside of {folder.name}/",
                "Both sides run head's files of one folder: put this file next to the tests, and "
                'write benchmarks = "tests" below [tool.perfci].',
            )
    try:
        collected, problem = benchmarks_of(files, Path.cwd()), ""
    except Exception as error:  # noqa: BLE001 (user code: reported)
        last = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        collected, problem = (), f"pytest can't collect {', '.join(paths)}: {last}"
    if not collected:
        raise BenchmarkError(
            "no-tests",
            f"{where}: {problem or 'no test of ' + ', '.join(paths) + ' measures'}",
            "A test measures what it calls by the fixture `benchmark`, or is marked "
            "@pytest.mark.perfci; `pytest --collect-only` shows what pytest finds.",
        )
    sources = tuple(map(str, files))
    return tuple(
        replace(each, file=file, line=int(line), tags=(*each.tags, *tags), sources=sources)
        for each in collected
    )


# As a plugin: the suite runs as tests.


def pytest_configure(config: pytest.Config) -> None:
    """Know the mark, and have the fixture where no plugin that measures is installed."""
    know_marks(config)
    if not any(config.pluginmanager.hasplugin(name) for name in MEASURING):
        config.pluginmanager.register(_Once(), "perfci_once")


class _Once:
    @pytest.fixture
    def benchmark(self) -> Call:
        """Call once what it is called with."""
        return Call(lambda _call: None)
