"""Outputs of a command: notices while it works, and the files and folders it writes at the end.

Paths are checked before the work, and written after it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Protocol

from perfci.errors import OutsideError, UsageError, joined_error
from perfci.files import folder_held, require_writable, write_file, writing
from perfci.model.report import Report
from perfci.report.clean import Clean

STANDARD_OUTPUT = Path("-")
"""The path ``-``: the caller prints this output itself. It never means a file of that name."""
MANIFEST = "perfci-site.txt"
"""The file in a site's folder that lists the site's files, so that no other file is removed."""


Announce = Callable[[str], None]
"""Shows one line about the next step. The line stays on the screen."""


class Say(Protocol):
    """Takes one line. ``err`` is set for lines that are not part of the result, as a warning."""

    def __call__(self, text: str, /, *, err: bool = False) -> None:
        """Show, keep or drop ``text``, which may quote untrusted names."""


def silent(_: object, *, err: bool = False) -> None:
    """Drop a line."""


def files_of(outputs: Mapping[str, Path]) -> dict[str, Path]:
    """Return the outputs that are files."""
    return {name: path for name, path in outputs.items() if path != STANDARD_OUTPUT}


def require_distinct(outputs: Mapping[str, Path], history: Iterable[Path] = ()) -> None:
    """Raise UsageError if two outputs are one file, or if one is a file of the ``history``.

    Keys are the outputs' names as the user knows them. A link counts as the file that it leads to.
    """
    kept = tuple(history)
    for name, path in outputs.items():
        if any(_same(path, other) for other in kept):
            raise UsageError(
                "output-is-history",
                f"{name} is the history itself, {path}, which would be overwritten",
                f"Choose another file for {name}.",
            )
    for (name, path), (other, place) in combinations(outputs.items(), 2):
        if _same(path, place):
            raise UsageError(
                "same-output",
                f"{name} and {other} are one file, {path}, and only one would be left",
                "Choose a file for each.",
            )


def _same(path: Path, other: Path) -> bool:
    """Return whether both paths are one file. Devices and pipes aren't: they take many texts."""
    if os.path.realpath(path) == os.path.realpath(other):
        return not path.exists() or path.is_file()
    try:
        first, two = path.stat(), other.stat()
    except OSError:  # missing or out of reach, which the writing reports
        return False
    return stat.S_ISREG(first.st_mode) and os.path.samestat(first, two)


def check_writable(outputs: Mapping[str, Path], history: Iterable[Path] = ()) -> None:
    """Raise an error before anything is measured if an output can't be written afterwards.

    The same if writing it would destroy another output or a file of the ``history``.
    """
    require_distinct({f"--{name}": path for name, path in outputs.items()}, history)
    for path in files_of(outputs).values():
        with writing(path):
            require_writable(path)


def rendered(report: Report, outputs: Mapping[str, Path]) -> dict[Path, Clean]:
    """Return the text of every requested file."""
    from perfci.report.exporters import exporter

    return {path: exporter(name).render(report) for name, path in outputs.items()}


def write_files(files: Mapping[Path, str], besides: str = "") -> None:
    """Write every file. After all were tried, raise one error that names those that failed."""
    problems = []
    for path, text in files.items():
        try:
            with writing(path, besides):
                write_file(path, text)
        except OutsideError as error:
            problems.append(error)
    if problems:
        raise joined_error(problems)


def require_own_site(folder: Path) -> None:
    """Raise UsageError if ``folder`` has files and isn't a report's: some would be overwritten."""
    with writing(folder):
        if folder.exists() and not folder.is_dir():
            raise UsageError("not-a-folder", f"{folder} is not a folder", "Choose another.")
        if folder.exists() and any(folder.iterdir()) and not (folder / MANIFEST).is_file():
            raise UsageError(
                "not-a-site",
                f"{folder} holds other files, and no report of perfci's ({MANIFEST} lists its own)",
                "Choose a new folder for --html.",
            )


def write_site(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write ``files`` (paths with ``/``, and bytes) to ``folder``, and remove the last report's.

    Files that the report's manifest lacks stay. The page itself, which comes last, is the first
    that leads to the others. OutsideError if a file can't be written.
    """
    require_own_site(folder)
    with writing(folder), folder_held(folder):
        manifest = folder / MANIFEST
        before = manifest.read_text("utf-8").splitlines() if manifest.exists() else []
        manifest.touch()  # first: a report that is cut short can be replaced
        written = []
        for name, content in files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            written.append(name)
        for name in {*before} - {*written}:
            if (folder / name).resolve().is_relative_to(folder.resolve()):
                (folder / name).unlink(missing_ok=True)
        write_file(manifest, "".join(f"{name}\n" for name in written))
