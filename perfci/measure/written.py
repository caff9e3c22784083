"""Which benchmarks a file writes, read from its text: a side's own files are never imported."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_PACKAGE = "perfci"
_DECORATOR = "benchmark"


def written_in(root: Path, files: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Return the names that each file writes, by its path relative to ``root``."""
    return {
        Path(file).relative_to(root).as_posix(): benchmark_names(Path(file).read_bytes())
        for file in files
    }


def benchmark_names(source: bytes) -> frozenset[str]:
    """Return the names of the benchmarks that ``source`` writes; none where it can't be parsed.

    A name that is computed isn't known, nor is a benchmark that isn't made by a decorator.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # of the user's own string escapes
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # all that the parser raises
        return frozenset()
    statements = tuple(_of_the_module(tree.body))
    packages, decorators = _imported(statements)
    return frozenset(
        name
        for statement in statements
        if isinstance(statement, ast.FunctionDef)
        for decorator in statement.decorator_list
        if _marks(decorator, packages, decorators)
        and (name := _name(decorator, statement.name)) is not None
    )


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
