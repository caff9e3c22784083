"""The files a command writes: seen to be writable before the work, and written after it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

from perfci.errors import OutsideError, UsageError
from perfci.files import require_writable, write_file
from perfci.model.report import Report

STANDARD_OUTPUT = Path("-")
"""The output that a caller shows by itself: never a file of that name."""


def files_of(outputs: Mapping[str, Path]) -> dict[str, Path]:
    """Return the outputs that are files."""
    return {name: path for name, path in outputs.items() if path != STANDARD_OUTPUT}


# Outputs that would overwrite one another or the history: refused before anything is done.


def require_distinct(
    outputs: Mapping[str, Path],
    history: Iterable[Path] = (),
    folders: Mapping[str, Path] | None = None,
) -> None:
    """UsageError where two places are one. Keys are what the user calls each output.

    ``folders`` are replaced whole: nothing else may be in one. Links lead to one file, too.
    """
    folders = folders or {}
    kept = tuple(history)
    for name, path in outputs.items():
        if any(_same(path, other) for other in kept):
            raise UsageError(
                "output-is-history",
                f"{name} is the history itself, {path}: it would be overwritten",
                f"Choose another file for {name}.",
            )
    for (name, path), (other, place) in combinations(outputs.items(), 2):
        if _same(path, place):
            raise UsageError(
                "same-output",
                f"{name} and {other} are one file, {path}: only one would be left",
                "Choose a file for each.",
            )
    for name, folder in folders.items():
        inside = [f"{other} ({path})" for other, path in outputs.items() if _holds(folder, path)]
        inside += [f"the history ({path})" for path in kept[:1] if _holds(folder, path)]
        if inside:
            raise UsageError(
                "output-in-folder",
                f"{name} is replaced whole, and {inside[0]} would be in it: {folder}",
                f"Choose a folder for {name} that nothing else is in.",
            )


def _same(path: Path, other: Path) -> bool:
    """Whether both are one file, there or not yet. A device or a pipe takes any number of texts."""
    if os.path.realpath(path) == os.path.realpath(other):
        return not path.exists() or path.is_file()
    try:
        one, two = path.stat(), other.stat()
    except OSError:  # one isn't there or can't be reached, which the writing will say
        return False
    return stat.S_ISREG(one.st_mode) and os.path.samestat(one, two)


def _holds(folder: Path, path: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def check_writable(outputs: Mapping[str, Path], history: Iterable[Path] = ()) -> None:
    """Fail before anything is measured where a file could not be written afterwards.

    Or where writing it would destroy another one, or one of the ``history``'s files.
    """
    require_distinct({f"--{name}": path for name, path in outputs.items()}, history)
    for path in files_of(outputs).values():
        try:
            require_writable(path)
        except OSError as error:
            raise unwritable(path, error) from error


def rendered(report: Report, outputs: Mapping[str, Path]) -> dict[Path, str]:
    """Return the text of every file that was asked for. UsageError for a broken exporter."""
    from perfci.report.exporters import named

    return {path: named(name).text(report) for name, path in outputs.items()}


def write_files(files: Mapping[Path, str], besides: str = "") -> None:
    """Write every file; one that fails doesn't keep the others back, and each of those is named."""
    problems = []
    for path, text in files.items():
        try:
            write_file(path, text)
        except OSError as error:
            problems.append(unwritable(path, error, besides))
    if problems:
        raise OutsideError(
            problems[0].slug, "; ".join(one.message for one in problems), problems[0].advice
        )


def unwritable(path: Path, error: OSError, besides: str = "") -> OutsideError:
    """Return the error for a file that can't be written."""
    return OutsideError(
        "unwritable",
        f"{path} can't be written: {error.strerror or error}",
        f"Choose another path, or make room. {besides}".rstrip(),
    )
