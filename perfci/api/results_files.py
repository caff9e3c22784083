"""``results=`` of ``perfci.command``: the file of results that each run of a command writes.

A worker only keeps the files' content. The parent parses it, with its importers of other tools'
results.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from perfci.errors import Unusable
from perfci.model.case import Gate
from perfci.model.worker import ResultsFile
from perfci.units import parse_share

MOST_BYTES = 16 << 20
"""Largest file of results that is kept."""


@dataclass(slots=True, eq=False)
class ResultsFiles:
    """Keeps the content that each run since ``begin`` wrote to the file at ``path``."""

    path: Path
    format: str
    threshold: float
    gate: Gate
    _kept: list[ResultsFile] = field(default_factory=list)

    def remove(self) -> None:
        """Remove an earlier run's file. Otherwise a run that writes nothing would look measured."""
        self.path.unlink(missing_ok=True)

    def keep(self, command: str) -> None:
        """Keep the file that the run wrote. Unusable if there is no file, or it is too large."""
        try:
            content = self.path.read_bytes()
        except OSError as error:
            why = f"`{command}` wrote no results to {self.path}: {error.strerror}"
            raise Unusable("no_results", why) from error
        if len(content) > MOST_BYTES:
            why = f"{self.path} of `{command}` has more than {MOST_BYTES >> 20} MiB"
            raise Unusable("no_results", f"{why}: leave raw data out")
        text = content.decode("latin-1")  # one character per byte, whatever the encoding
        self._kept.append(ResultsFile(str(self.path), text, self.format, self.threshold, self.gate))

    def begin(self) -> None:
        """Forget the files so far."""
        self._kept.clear()

    def files(self) -> tuple[ResultsFile, ...]:
        """Return the files of the runs since ``begin``."""
        return tuple(self._kept)


def results_of(
    path: str | os.PathLike[str] | None,
    cwd: str | os.PathLike[str] | None,
    form: str,
    threshold: float | str,
    gate: Gate,
) -> ResultsFiles | None:
    """Return the files of results at ``path``, which is relative to ``cwd``, or None."""
    if path is None:
        return None
    return ResultsFiles(Path(cwd or "") / path, form, parse_share(threshold), gate)


def wrongs_of_results(path: Any, form: Any, threshold: Any, gate: Any) -> Iterator[str]:
    """Yield errors in the arguments, each with its correction."""
    if path is None:
        if form:
            yield f"format is {form!r}, and there is no `results` file"
        return
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        yield f"results is {path!r}; give the path of the file that the command writes"
    elif ".." in Path(path).parts or not _is_own(Path(path)):
        own = (
            "a path below the command's folder, or in tempfile.gettempdir(): each side has its own"
        )
        yield f"results is {str(path)!r}; give {own}"
    if not isinstance(form, str):
        yield f"format is {form!r}; give an importer's name"
    try:
        parse_share(threshold)
    except ValueError as error:
        yield f"threshold is {threshold!r}; give {error}"
    if gate not in get_args(Gate):
        yield f"gate is {gate!r}; give fail, warn or info"


def _is_own(path: Path) -> bool:
    return not path.is_absolute() or path.is_relative_to(tempfile.gettempdir())
