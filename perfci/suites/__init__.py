"""Suites written for other tools, read as benchmarks. Each form of suite is a module here.

A form recognises its files and makes benchmarks from them, in the worker. It measures nothing: a
benchmark's function returns the work, or hands it over. A form imports only the standard library
and its own tool.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Protocol

from perfci.api.definition import Benchmark
from perfci.model.worker import WorkOrder
from perfci.plugins import built_in_modules

_OWN = re.compile(r"^[ \t]*(?:import|from)[ \t]+perfci\b", re.MULTILINE)
"""An import of perfci. A file with it is a benchmark file of perfci's own form."""

FIXTURES = frozenset({"benchmark", "codspeed_benchmark"})
"""The fixtures that measure."""
PYTEST_ARGUMENTS: list[str] = []
"""The order's arguments of pytest, which a benchmark file may call, too."""


class SuiteForm(Protocol):
    """A module of this package.

    ``TOOL`` names the packages of the suite's tool, which a fork server imports for all workers.
    ``NONE_THERE`` is advice for a file without benchmarks. A form may also have ``place(root)``,
    which returns the folder and the file pattern of a suite in the tree, or None.
    """

    TOOL: tuple[str, ...]
    NONE_THERE: str

    def holds(self, file: Path, root: Path, text: str) -> bool:
        """Return whether ``file`` of the tree ``root``, with this text, is of this form.

        Doesn't import the tool, because perfci's own Python may not have it.
        """

    def benchmarks(self, file: Path, order: WorkOrder) -> tuple[Benchmark, ...]:
        """Import the file, in a worker with this order, and return its benchmarks.

        Raises BenchmarkError if the tool is missing, or if the file is written wrongly for it.
        """

    def written(
        self, file: Path, root: Path, text: str, files: Iterable[str]
    ) -> Mapping[str, tuple[str, ...] | None]:
        """Return the benchmarks that the text defines, without importing the file.

        Each is mapped to perfci's metrics that it reports, or to None for all of them. Base's files
        are read this way, to find benchmarks that head no longer has. ``files`` are all benchmark
        files of the side.
        """


def usual_place(root: Path) -> tuple[str, str] | None:
    """Return the folder and the file pattern of a suite found without configuration, or None."""
    places = (getattr(form, "place", lambda _root: None)(root) for form in _forms())
    return next(filter(None, places), None)


def form_of(file: str, root: str) -> SuiteForm | None:
    """Return the form of a benchmark file. None for perfci's own, such as files that import it."""
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # importing the file will fail with the reason
        return None
    if _OWN.search(text):
        return None
    return next((form for form in _forms() if form.holds(path, Path(root), text)), None)


def has_own_files(root: Path, folder: str, pattern: str) -> bool:
    """Return whether a file of the folder that matches the pattern defines benchmarks by perfci.

    A script that only imports perfci has no ``benchmark`` in it.
    """
    files = filter(Path.is_file, (root / folder).rglob(pattern))
    texts = (file.read_text("utf-8", errors="replace") for file in files)
    return any(_OWN.search(text) and "benchmark" in text for text in texts)


@cache
def _forms() -> tuple[SuiteForm, ...]:
    return tuple(form for _, form in built_in_modules(sys.modules[__name__]))


def module_name(file: Path, root: Path, files: Iterable[str]) -> str:
    """Return the name of the file's module, with the names of the packages around it.

    If another one of ``files`` has that name, the file's path from the root is the name.
    """
    name = _name_in_packages(file)
    alike = (Path(path) for path in files if path != str(file) and path.endswith(f"/{file.name}"))
    if any(_name_in_packages(other) == name for other in alike):
        return ".".join(file.relative_to(root).with_suffix("").parts)
    return name


def _name_in_packages(file: Path) -> str:
    packages: list[str] = []
    folder = file.parent
    while (folder / "__init__.py").is_file():
        packages.insert(0, folder.name)
        folder = folder.parent
    return ".".join((*packages, file.stem))
