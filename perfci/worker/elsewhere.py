"""Which of a tree's own packages were imported from somewhere else: from an installed copy, say.

Such a side measures code that isn't the commit's, and two of them measure the same code twice.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from perfci.record.case import Elsewhere

_NOT_OURS = frozenset(
    {"third_party", "vendor", "vendored", "_vendor", "extern", "external", "node_modules", "dist"}
)
_DEEPEST = 4
"""Folders below the tree's root; a package lies no deeper in any layout that people use."""
_HARNESS = "perfci"


def imported_elsewhere(tree: str, others: Sequence[str]) -> tuple[Elsewhere, ...]:
    """Return the top-level packages of ``tree`` that came from outside it and ``others``."""
    trees = tuple(os.path.realpath(one) + os.sep for one in (tree, *others))
    found = []
    for name, folder in sorted(packages_in(tree).items()):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and name != _HARNESS and not os.path.realpath(file).startswith(trees):
            found.append(Elsewhere(name, file, folder))
    return tuple(found)


def packages_in(tree: str) -> dict[str, str]:
    """Return the packages in ``tree`` that lie in no other, with the folder that holds each.

    Folders are relative to the tree. What is hidden, vendored or a virtual environment is
    somebody else's.
    """
    found: dict[str, str] = {}
    for name, folder in _packages(Path(tree), _DEEPEST):
        found.setdefault(name, os.path.relpath(folder, tree))
    return found


def _packages(folder: Path, deeper: int) -> Iterator[tuple[str, Path]]:
    inner = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            if not entry.is_dir(follow_symlinks=False) or entry.name.startswith("."):
                continue
            if (Path(entry) / "__init__.py").is_file():
                yield entry.name, folder
            elif entry.name not in _NOT_OURS and not (Path(entry) / "pyvenv.cfg").exists():
                inner.append(Path(entry))
    if deeper:
        for one in inner:
            yield from _packages(one, deeper - 1)
