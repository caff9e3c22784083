"""Suites that are written for other tools, as benchmarks. Each form is a module of this package.

A form recognises its files and makes benchmarks of them, in the worker. It measures nothing: a
benchmark's function returns the work, or hands it over. Standard library only, but for what a form
imports of its own tool.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Protocol

from perfci.api.definition import Benchmark
from perfci.plugins import built_in_modules

_UNFIT = re.compile(r"[^A-Za-z0-9_.+\-]+")
_LONGEST_LABEL = 60
_OWN = re.compile(r"^[ \t]*(?:import|from)[ \t]+perfci\b", re.MULTILINE)


class SuiteForm(Protocol):
    """A module of this package.

    ``TOOL`` are the packages of the suite's tool, which an ancestor imports for all workers. A form
    may have ``place(root)``: the folder and the pattern of a suite in the tree, or None.
    """

    TOOL: tuple[str, ...]

    def holds(self, file: Path, root: Path, text: str) -> bool:
        """Return whether ``file`` of the tree ``root``, with this text, is of this form.

        Imports nothing of the tool, which perfci's own Python may lack.
        """

    def benchmarks(self, file: Path, root: Path) -> tuple[Benchmark, ...]:
        """Import the file, in a worker, and return its benchmarks, in order; () for none.

        Raises BenchmarkError where the tool is missing or the file is written wrongly for it.
        """

    def written(self, file: Path, root: Path, text: str) -> Mapping[str, tuple[str, ...] | None]:
        """Return the benchmarks that the text names, without importing it.

        Each has the metrics of perfci's that it reports, or None for all. Base's files are read so,
        to know what head no longer has.
        """


def usual_place(root: Path) -> tuple[str, str] | None:
    """Return the folder and the pattern of a suite that needs no configuration to be found."""
    places = (getattr(form, "place", lambda _root: None)(root) for form in _forms())
    return next(filter(None, places), None)


def form_of(file: str, root: str) -> SuiteForm | None:
    """Return the form of a benchmark file; None for perfci's own. A file that imports perfci is."""
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # its import says why
        return None
    if _OWN.search(text):
        return None
    return next((form for form in _forms() if form.holds(path, Path(root), text)), None)


@cache
def _forms() -> tuple[SuiteForm, ...]:
    return tuple(form for _, form in built_in_modules(sys.modules[__name__]))


def loaded_of_tool(form: SuiteForm) -> Iterator[str]:
    """Yield the modules of the form's tool that are imported by now, in their order."""
    for name in tuple(sys.modules):
        if name.partition(".")[0] in form.TOOL:
            yield name


def fit_name(text: str) -> str:
    """Return a benchmark's name as it can stand in an id."""
    return _UNFIT.sub("_", text).lstrip(".-+") or "_"


def fit_label(text: str, taken: Collection[str] = ()) -> str:
    """Return the label of an axis' value. A label that is ``taken`` gets a number."""
    label = _UNFIT.sub("_", text)[:_LONGEST_LABEL] or "_"
    if label not in taken:
        return label
    end = f"-{len(taken) + 1}"
    return label[: _LONGEST_LABEL - len(end)] + end
