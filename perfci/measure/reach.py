"""Which benchmark files reach changed code, by the imports that stand in the sources."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from pathlib import Path

from perfci.measure.checkout.trees import cannot_be_code
from perfci.measure.plan import SessionPlan


def files_reaching_changes(plan: SessionPlan, files: Collection[str]) -> set[str]:
    """Return those of head's benchmark ``files`` that reach a committed change."""
    if not plan.changes:
        return set()
    root = plan.head_root
    changed = {root / name for names in plan.changes.values() for name in names}
    folders = (root / plan.config.benchmarks, *map(Path, plan.python_path_of(plan.sides[-1])))

    @cache  # benchmark files import the same library: each of its files is parsed once
    def imported(path: Path) -> frozenset[Path]:
        return frozenset(_imported_files(path, folders))

    return {file for file in files if _reaches(root / file, changed, imported)}


def is_harmless(plan: SessionPlan, files: Collection[str]) -> bool:
    """Return whether all changes are prose, or tests that none of head's benchmark ``files`` needs.

    A test in the benchmarks' folder counts as needed.
    """
    root = plan.head_root
    benchmarks = root / plan.config.benchmarks
    folders = (benchmarks, *map(Path, plan.python_path_of(plan.sides[-1])))
    tests = {root / name for name in plan.harmless if not cannot_be_code(name)}
    return bool(plan.harmless) and not (
        any(path.is_relative_to(benchmarks) for path in tests)
        or any(reaches(root / file, tests, folders) for file in files)
    )


def reaches(file: Path, changed: Collection[Path], folders: Sequence[Path]) -> bool:
    """Return whether ``file`` is a ``changed`` file, or imports one, directly or not.

    Modules are looked for in ``folders``. An import by a computed name isn't seen, nor is a file
    that is read or loaded otherwise. That is enough, because this only orders cases.
    """
    return _reaches(file, changed, lambda path: frozenset(_imported_files(path, folders)))


def _reaches(
    file: Path, changed: Collection[Path], imported: Callable[[Path], frozenset[Path]]
) -> bool:
    waiting, seen = [file], {file}
    while waiting:
        path = waiting.pop()
        if path in changed:
            return True
        following = imported(path) - seen
        seen |= following
        waiting += following
    return False


def _imported_files(file: Path, folders: Sequence[Path]) -> Iterator[Path]:
    if file.suffix != ".py":
        return
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module_files(alias.name.split("."), folders)
        elif isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            roots = (file.parents[node.level - 1],) if node.level else folders
            for alias in node.names:
                yield from _module_files([*module, alias.name], roots)


def _module_files(names: Sequence[str], folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that an import of this dotted name runs: its packages' and its own."""
    for folder in folders:
        for depth in range(1, len(names) + 1):
            module = folder.joinpath(*names[:depth])
            yield from filter(Path.is_file, (module / "__init__.py", module.with_suffix(".py")))
