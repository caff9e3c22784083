"""The code that cases use: as their workers ran it, and by the imports of the sources."""

from __future__ import annotations

import ast
import hashlib
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from perfci.measure.checkout.trees import cannot_be_code
from perfci.measure.code_guard import CodeUsed
from perfci.measure.machine.isolation import is_secret
from perfci.measure.plan import SessionPlan, SidePlan
from perfci.measure.progress import CaseState
from perfci.measure.selection import parsed
from perfci.model.case import Case
from perfci.units import first_of
from perfci.worker.source_hash import source_hash

_MOST_REACHED = 2_000
"""Definitions that are looked at for a benchmark."""


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

        Nothing, too, if another file changed, which a case may use unseen, or if a case failed on
        one side alone (what differs made it fail), or a whole file did.
        """
        failed = any(len({failure.side for failure in state.failures}) == 1 for state in states)
        if failed or any(side.discovery.failures for side in self._plan.sides):
            return ()
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


def changed_lines_reached(plan: SessionPlan, cases: Sequence[Case]) -> dict[str, int]:
    """Return by case how many changed lines are in what its benchmark calls, as far as names tell.

    A case whose benchmark file only imports a changed file has 0, and any other case none.
    """
    root, folders = plan.head.root, _folders(plan)
    changed = plan.differences.lines_of("head")
    lines = {root / name: of_file for name, of_file in changed.items()}
    files = _reaching(plan, lines, {case.file for case in cases})
    counts: dict[tuple[str, int], int] = {}
    for file in files:
        named: dict[str, list[_NamedCode]] = {}
        for each in chain.from_iterable(map(_defined_in, imported_by(root / file, folders))):
            named.setdefault(each.name, []).append(each)
        for line in {case.line for case in cases if case.file == file}:
            spans: dict[Path, set[int]] = {}
            for code in _reached(named, root / file, line):
                spans.setdefault(code.file, set()).update(range(code.first, code.last + 1))
            counts[file, line] = sum(len(of & spans.get(at, set())) for at, of in lines.items())
    return {case.id: counts[case.file, case.line] for case in cases if case.file in files}


class _NamedCode(NamedTuple):
    """A function, class, global or renamed import, its lines, and the names that stand in it."""

    name: str
    file: Path
    first: int
    last: int
    mentions: frozenset[str]


def _reached(
    named: Mapping[str, Sequence[_NamedCode]], file: Path, line: int
) -> Iterable[_NamedCode]:
    """Return the benchmark's innermost definition around ``line``, and what its names lead to.

    Of a class, the methods whose names begin with ``setup`` belong to the benchmark, too. What is
    nearest comes first, and the rest of much is left out.
    """
    own = _defined_in(file)
    around = [each for each in own if each.first <= line <= each.last]
    if not around:
        return ()
    outer, inner = (pick(around, key=lambda each: each.last - each.first) for pick in (max, min))
    within = (each for each in own if outer.first <= each.first <= outer.last)
    waiting = deque([inner, *(each for each in within if each.name.startswith("setup"))])
    seen: dict[_NamedCode, None] = {}
    while waiting and len(seen) < _MOST_REACHED:
        if (each := waiting.popleft()) not in seen:
            seen[each] = None
            waiting += [code for name in each.mentions for code in named.get(name, ())]
    return seen


@cache
def _defined_in(file: Path) -> tuple[_NamedCode, ...]:
    every = []
    for node in (each for each in ast.walk(_tree(file)) if isinstance(each, ast.stmt)):
        names: list[str | None] = []
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names = [node.name]
            case ast.Assign(targets=targets, col_offset=0):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name), col_offset=0):
                names = [name]
            case ast.Import() | ast.ImportFrom():
                names = [alias.asname for alias in node.names]
        decorators = getattr(node, "decorator_list", ())
        first = min((each.lineno for each in decorators), default=node.lineno)
        last = node.end_lineno or first
        mentions = frozenset(_names_in(node)) if any(names) else frozenset()
        every += [_NamedCode(name, file, first, last, mentions) for name in names if name]
    return tuple(every)


def _names_in(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")


def is_harmless(plan: SessionPlan, files: Collection[str]) -> bool:
    """Return whether all changes are prose, or tests that none of head's benchmark ``files`` needs.

    A test in the benchmarks' folder counts as needed.
    """
    root, benchmarks = plan.head.root, plan.head.root / plan.config.benchmarks
    harmless = plan.differences.harmless
    tests = {root / name for name in harmless if not cannot_be_code(name)}
    needed = any(path.is_relative_to(benchmarks) for path in tests)
    return bool(harmless) and not needed and not _reaching(plan, tests, files)


def _forget() -> None:
    """Forget what files import and define: another commit's files may have the same paths."""
    for cached in (_tree, _imported, _defined_in):
        cached.cache_clear()


def _reaching(plan: SessionPlan, changed: Collection[Path], files: Collection[str]) -> set[str]:
    _forget()
    folders = _folders(plan)
    return {
        file
        for file in files
        if changed and not imported_by(plan.head.root / file, folders).isdisjoint(changed)
    }


def _folders(plan: SessionPlan) -> tuple[Path, ...]:
    paths = plan.python_path_of(plan.head)
    return (plan.head.root / plan.config.benchmarks, *map(Path, paths))


def imported_by(file: Path, folders: tuple[Path, ...]) -> set[Path]:
    """Return ``file`` and the files that it imports, directly or not.

    Modules are looked for in ``folders``. An import by a computed name isn't seen, nor is a file
    that is read or loaded otherwise.
    """
    waiting, seen = [file], {file}
    while waiting:
        following = _imported(waiting.pop(), folders) - seen
        seen |= following
        waiting += following
    return seen


@cache
def _tree(file: Path) -> ast.Module:
    return parsed(file.read_bytes() if file.suffix == ".py" and file.is_file() else b"")


@cache  # benchmark files import the same library
def _imported(file: Path, folders: tuple[Path, ...]) -> frozenset[Path]:
    files: list[Path] = []
    for node in ast.walk(_tree(file)):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    files += _module_files(alias.name.split("."), folders)
            case ast.ImportFrom(module=module, names=names, level=level):
                roots = (file.parents[level - 1],) if level else folders
                package = module.split(".") if module else []
                for alias in names:
                    files += _module_files([*package, alias.name], roots)
    return frozenset(files)


def _module_files(names: Sequence[str], folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that an import of this dotted name runs: its packages' and its own."""
    for folder in folders:
        for depth in range(1, len(names) + 1):
            module = folder.joinpath(*names[:depth])
            yield from filter(Path.is_file, (module / "__init__.py", module.with_suffix(".py")))


def with_helpers(plan: SessionPlan) -> tuple[SidePlan, ...]:
    """Return the sides with hashes of sources that also cover the benchmarks' helpers.

    These are the Python files of the benchmarks' folder that the benchmark's file imports. Files
    that were imported by a computed name count for all benchmarks.
    """
    _forget()
    return tuple(_with_helpers(plan, side) for side in plan.sides)


def _with_helpers(plan: SessionPlan, side: SidePlan) -> SidePlan:
    root, paths = side.root, tuple(map(Path, plan.python_path_of(side)))
    laid = {root / name for name in side.overlay.files if name.endswith(".py")}
    files = {root / case.file for case in side.discovery.cases}
    helpers = {
        file: imported_by(file, (file.parent, root / plan.config.benchmarks, *paths)) & laid
        for file in files
    }
    ran = {root / name for used in side.used for name in used.own} & laid
    hidden = ran.difference(files, map(Path, plan.benchmark_files(root)), *helpers.values())
    cases = tuple(
        replace(case, source_hash=_hash(case.source_hash, (helpers[file] | hidden) - {file}))
        for case in side.discovery.cases
        for file in (root / case.file,)
    )
    return replace(side, discovery=replace(side.discovery, cases=cases))


def _hash(own: str, helpers: Collection[Path]) -> str:
    text = f"{own}{source_hash(sorted(helpers))}"
    return hashlib.sha256(text.encode()).hexdigest()[:16] if helpers else own


def unpassed_notes(plan: SessionPlan) -> tuple[str, ...]:
    """Return a note on variables that are set here and read by the sides, but not passed to them.

    Names of secrets are left out. A variable counts as read if a file that mentions the environment
    has its name as a text, other than to set it.
    """
    passed = plan.launch(plan.head).environment
    readers: dict[str, str] = {}
    for side in plan.sides:
        for file in sorted(name for used in side.used for name in used.own):
            if file.endswith(".py") and (path := side.root / file).is_file():
                for name in _texts_in(path):
                    readers.setdefault(name, file)
    names = [
        n for n in sorted(readers) if n in plan.inherited and not (n in passed or is_secret(n))
    ]
    if not names:
        return ()
    listed = first_of([f"{name} ({readers[name]})" for name in names], 5)
    quoted = ", ".join(f'"{name}"' for name in names)
    note = (
        f"Variables that are set here and that the code reads, but not passed to workers: {listed}."
    )
    return (f"{note} To pass them: pass_env = [{quoted}] in [tool.perfci].",)


def _texts_in(file: Path) -> set[str]:
    """Return the texts of a file that mentions the environment, but for variables that it sets."""
    text = file.read_text("utf-8", "replace")
    if "environ" not in text and "getenv" not in text:
        return set()
    nodes = list(ast.walk(_tree(file)))
    targets = (each for each in nodes if isinstance(each, ast.Subscript))
    written = {id(each.slice) for each in targets if not isinstance(each.ctx, ast.Load)}
    texts = (each for each in nodes if isinstance(each, ast.Constant) and id(each) not in written)
    return {each.value for each in texts if isinstance(each.value, str)}
