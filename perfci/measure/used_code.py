"""The code that cases use: as their workers ran it, and by the imports of the sources."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from perfci.measure.checkout.trees import cannot_be_code
from perfci.measure.code_guard import CodeUsed
from perfci.measure.plan import SessionPlan
from perfci.measure.progress import CaseState


class UsedCode:
    """Collects what workers used, round by round."""

    def __init__(self, plan: SessionPlan) -> None:
        self._plan = plan
        self._used: dict[str, set[CodeUsed]] = {side.name: set() for side in plan.sides}

    def add(self, used: Mapping[str, CodeUsed]) -> None:
        """Note what a round's workers used, by side."""
        for side, files in used.items():
            self._used[side].add(files)

    def touches_nothing(self, used: Mapping[str, CodeUsed]) -> bool:
        """Return whether both sides of a case used no changed file, and started no process.

        False, too, if a changed file may be used unseen.
        """
        changed = self._plan.differences.seen
        return (
            len(used) > 1
            and changed is not None
            and not any(side.started or side.own & changed for side in used.values())
        )

    def installed(self) -> tuple[str, ...]:
        """Return the packages that all sides imported from the same installed file.

        Other copies are meant to differ.
        """
        elsewhere = [
            {module for used in side for module in used.elsewhere} for side in self._used.values()
        ]
        common = set.intersection(*elsewhere)
        return tuple(sorted({module.name.partition(".")[0] for module in common}))

    def unexercised(self, states: Sequence[CaseState]) -> tuple[str, ...]:
        """Return the changed sources if no case used any of them, else nothing.

        Nothing, too, if another file changed: a case may use that unseen.
        """
        differences = self._plan.differences
        measured = any(state.rounds for state in states)
        unused = self._files().isdisjoint(differences.sources)
        return differences.sources if differences.python_alone and measured and unused else ()

    def notes(self) -> tuple[str, ...]:
        """Return a note on helpers of head's benchmarks that both sides ran."""
        changed = frozenset().union(*(side.overlay.changed for side in self._plan.sides))
        pattern = self._plan.config.pattern
        names = sorted(
            name
            for name in changed & self._files()
            if not fnmatch(name.rpartition("/")[2], pattern)
        )
        if not names:
            return ()
        what = "which differ" if len(names) > 1 else "which differs"
        both = f"Both sides ran head's {', '.join(names)}, {what} in base"
        return (f"{both}: what lies in the benchmarks' folder is head's.",)

    def _files(self) -> frozenset[str]:
        """Return the files, relative to their trees, that any worker used."""
        return frozenset().union(*(used.own for side in self._used.values() for used in side))


def files_reaching_changes(plan: SessionPlan, files: Collection[str]) -> set[str]:
    """Return those of head's benchmark ``files`` that reach a committed change."""
    changed = {plan.head_root / name for name in plan.differences.sources}
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
