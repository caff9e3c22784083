"""Which benchmark files reach changed code, by the imports that stand in the sources."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path

from perfci.measure.checkout.trees import cannot_be_code
from perfci.measure.plan import SessionPlan


def files_reaching_changes(plan: SessionPlan, files: Collection[str]) -> set[str]:
    """Return those of head's benchmark ``files`` that reach a committed change."""
    changed = {
        plan.head_root / name for names in plan.differences.by_kind.values() for name in names
    }
    return _reaching(plan, changed, files)


def is_harmless(plan: SessionPlan, files: Collection[str]) -> bool:
    """Return whether all changes are prose, or tests that none of head's benchmark ``files`` needs.

    A test in the benchmarks' folder counts as needed.
    """
    root, benchmarks = plan.head_root, plan.head_root / plan.config.benchmarks
    harmless = plan.differences.harmless
    tests = {root / name for name in harmless if not cannot_be_code(name)}
    needed = any(path.is_relative_to(benchmarks) for path in tests)
    return bool(harmless) and not needed and not _reaching(plan, tests, files)


def _reaching(plan: SessionPlan, changed: Collection[Path], files: Collection[str]) -> set[str]:
    paths = plan.python_path_of(plan.sides[-1])
    folders = (plan.head_root / plan.config.benchmarks, *map(Path, paths))
    _imported.cache_clear()  # another commit's files may have the same paths
    return {file for file in files if changed and reaches(plan.head_root / file, changed, folders)}


def reaches(file: Path, changed: Collection[Path], folders: Sequence[Path]) -> bool:
    """Return whether ``file`` is a ``changed`` file, or imports one, directly or not.

    Modules are looked for in ``folders``. An import by a computed name isn't seen, nor is a file
    that is read or loaded otherwise.
    """
    waiting, seen = [file], {file}
    while waiting:
        path = waiting.pop()
        if path in changed:
            return True
        following = _imported(path, tuple(folders)) - seen
        seen |= following
        waiting += following
    return False


@cache  # benchmark files import the same library
def _imported(file: Path, folders: tuple[Path, ...]) -> frozenset[Path]:
    return frozenset(_imported_files(file, folders))


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
