"""Pure: which benchmarks a file writes, read from its text.

Both sides import head's benchmark files; base's own are only read.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PACKAGE = "perfci"
_DECORATOR = "benchmark"


@dataclass(frozen=True, slots=True)
class Written:
    """What a benchmark's decorator says in literals, or by a name that is given one in the file.

    ``metrics`` is None where it limits none, and where its value is computed: then nothing is
    known to be left out. Of ``thresholds`` those are here whose value can be read. Where it stands
    in an `if`, a `try` or the like, it is ``conditional``: not every machine has it.
    """

    metrics: tuple[str, ...] | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    conditional: bool = False


def written_in(root: Path, files: Iterable[str]) -> Mapping[str, Mapping[str, Written]]:
    """Return the benchmarks that each file writes, by its path relative to ``root``."""
    return {
        Path(file).relative_to(root).as_posix(): benchmarks_of(Path(file).read_bytes())
        for file in files
    }


def by_name(of_files: Mapping[str, Mapping[str, Written]]) -> dict[str, Written]:
    """Return the benchmarks of all files by their names."""
    return {name: one for ones in of_files.values() for name, one in ones.items()}


def benchmarks_of(source: bytes) -> Mapping[str, Written]:
    """Return the benchmarks that ``source`` writes; none where it can't be parsed.

    A name that is computed isn't known, nor is a benchmark that isn't made by a decorator.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # of the user's own string escapes
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # all that the parser raises
        return {}
    statements = tuple(_of_the_module(tree.body))
    packages, decorators = _imported(statements)
    constants = _constants(statements)
    unconditional = set(tree.body)
    return {
        name: _written(decorator, constants, conditional=statement not in unconditional)
        for statement in statements
        if isinstance(statement, ast.FunctionDef)
        for decorator in statement.decorator_list
        if _marks(decorator, packages, decorators)
        and (name := _name(decorator, statement.name)) is not None
    }


def _of_the_module(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when the module is imported, those in `if` and `try` too."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for inner in ast.iter_child_nodes(statement):
            if isinstance(inner, ast.stmt):
                yield from _of_the_module((inner,))
            elif isinstance(inner, (ast.ExceptHandler, ast.match_case)):
                yield from _of_the_module(inner.body)


def _imported(statements: Iterable[ast.stmt]) -> tuple[set[str], set[str]]:
    """Return what the file calls perfci, and what it calls the decorator."""
    packages: set[str] = set()
    decorators: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Import):
            packages |= {one.asname or one.name for one in statement.names if one.name == _PACKAGE}
        elif isinstance(statement, ast.ImportFrom) and statement.module == _PACKAGE:
            decorators |= {
                one.asname or one.name for one in statement.names if one.name == _DECORATOR
            }
    return packages, decorators


def _marks(decorator: ast.expr, packages: set[str], decorators: set[str]) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(called, ast.Name):
        return called.id in decorators
    return (
        isinstance(called, ast.Attribute)
        and called.attr == _DECORATOR
        and isinstance(called.value, ast.Name)
        and called.value.id in packages
    )


def _name(decorator: ast.expr, function: str) -> str | None:
    given = decorator.keywords if isinstance(decorator, ast.Call) else ()
    for keyword in given:
        if keyword.arg == "name":
            value = keyword.value
            constant = value.value if isinstance(value, ast.Constant) else ""
            if constant is None:
                return function
            return constant if isinstance(constant, str) and constant else None
    return function


def _written(
    decorator: ast.expr, constants: Mapping[str, ast.expr], *, conditional: bool
) -> Written:
    given = decorator.keywords if isinstance(decorator, ast.Call) else ()
    values = {one.arg: _literal(one.value, constants) for one in given if one.arg}
    metrics, thresholds = values.get("metrics"), values.get("thresholds")
    return Written(
        metrics=_texts(metrics) if isinstance(metrics, (list, tuple)) else None,
        thresholds={
            name: float(value)
            for name, value in (thresholds.items() if isinstance(thresholds, dict) else ())
            if isinstance(name, str) and isinstance(value, (int, float)) and value >= 0.0
        },
        conditional=conditional,
    )


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))


def _constants(statements: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    """Return what stands behind each name that the module gives a value exactly once."""
    given: dict[str, list[ast.expr]] = {}
    for statement in statements:
        if isinstance(statement, ast.Assign):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    given.setdefault(node.id, []).append(statement.value)
    return {name: values[0] for name, values in given.items() if len(values) == 1}


def _literal(value: ast.expr, constants: Mapping[str, ast.expr]) -> Any:
    """Return the value of a literal, or of a name that stands for one; None for all else."""
    if isinstance(value, ast.Name):
        value = constants.get(value.id, value)
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
