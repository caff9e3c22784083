"""Outputs that would overwrite one another or the history: refused before anything is done."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

from perfci.cli.options import history_place
from perfci.config import Config
from perfci.errors import UsageError


def history_files(given: str | None, config: Config, root: Path) -> tuple[Path, ...]:
    """Return the files of the history that a command means; none where a server has it.

    None, too, where nothing says whose it is: a command that needs one says so.
    """
    from perfci.cli.own_history import own_history
    from perfci.store.history.address import files_at

    if given or config.history:
        return files_at(history_place(given, config, root))
    try:
        return files_at(str(own_history(config, root)))
    except UsageError:
        return ()


def require_apart(
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
    except OSError:  # one isn't there or can't be reached, which the writing will tell
        return False
    return stat.S_ISREG(one.st_mode) and os.path.samestat(one, two)


def _holds(folder: Path, path: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
