"""The names and the words of the package, held to docs/words.md: counts that only shrink.

``LIMITS`` has how often each habit still occurs, and the size of ``perfci/``. Lower a limit when
you remove occurrences or lines. Never raise one: whoever adds lines takes them from elsewhere.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "perfci").rglob("*.py"))

VAGUE_CLASSES = {"Answer", "Asked", "Event", "Found", "Moved", "Part", "Place", "Task", "Wanted"}
VAGUE_LOCALS = {"asked", "found", "one", "said", "told"}
RIDDLES = {
    *("Surroundings", "at_once", "looking_itself", "untold"),
    *("why_unsayable", "why_untellable"),
}
OPENINGS = {"So", "What", "Whoever"}
PHRASES = (
    *("anew", "beside", "hasn't got", "is none", "nobody", "one a case", "others'"),
    *("so many", "somebody", "theirs", "told", "whoever"),
)
LIMITS = {
    "classes of one name": 0,
    "vague classes": 0,
    "vague locals": 19,
    "riddles of functions": 0,
    "riddles": 8,
    "openings": 0,
    "anew": 0,
    "beside": 2,
    "hasn't got": 0,
    "is none": 5,
    "nobody": 0,
    "one a case": 0,
    "others'": 0,
    "so many": 3,
    "somebody": 1,
    "theirs": 1,
    "told": 0,
    "whoever": 5,
    "long functions": 0,
    "modules": 228,
    "lines": 47_600,
}

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def nodes() -> tuple[ast.AST, ...]:
    """Return the nodes of the package's syntax trees that the tests look at."""
    kinds = ast.Module | _Definition | ast.Name | ast.arg
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in MODULES)
    return tuple(node for tree in trees for node in ast.walk(tree) if isinstance(node, kinds))


def definitions() -> Iterator[_Definition]:
    return (node for node in nodes() if isinstance(node, _Definition))


def docstrings() -> Iterator[str]:
    for node in nodes():
        if isinstance(node, ast.Module | _Definition) and (text := ast.get_docstring(node)):
            yield text


@cache
def tokens() -> tuple[tokenize.TokenInfo, ...]:
    """Return the names, the comments and the texts of the package."""
    kinds = {tokenize.NAME, tokenize.COMMENT, tokenize.STRING}
    read = (tokenize.tokenize(io.BytesIO(path.read_bytes()).readline) for path in MODULES)
    return tuple(token for every in read for token in every if token.type in kinds)


def identifiers() -> Iterator[str]:
    return (token.string for token in tokens() if token.type == tokenize.NAME)


@cache
def prose() -> str:
    """Return the comments and the texts of the package, and the pages of the docs."""
    pages = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    texts = [token.string for token in tokens() if token.type != tokenize.NAME]
    return "\n\n".join([*texts, *(path.read_text(encoding="utf-8") for path in pages)])


def local_names() -> Iterator[str]:
    """Return the names that functions and comprehensions bind: targets and parameters."""
    for node in nodes():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def test_the_classes_have_names_of_their_own() -> None:
    names = Counter(node.name for node in definitions() if isinstance(node, ast.ClassDef))
    held("classes of one name", [name for name, count in names.items() if count > 1])


def test_no_class_has_a_vague_name() -> None:
    classes = [node.name for node in definitions() if isinstance(node, ast.ClassDef)]
    held("vague classes", [name for name in classes if name.lstrip("_") in VAGUE_CLASSES])


def test_no_local_has_a_vague_name() -> None:
    held("vague locals", [name for name in local_names() if name in VAGUE_LOCALS])


def test_functions_have_the_names_of_what_they_return_or_do() -> None:
    names = [node.name.lstrip("_") for node in definitions() if not isinstance(node, ast.ClassDef)]
    held("riddles of functions", [x for x in names if x == "found" or x.startswith("why_")])


def test_no_name_is_a_riddle() -> None:
    held("riddles", [name for name in identifiers() if name in RIDDLES])


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    held("openings", [text for text in docstrings() if text.split(maxsplit=1)[0] in OPENINGS])


@pytest.mark.parametrize("phrase", PHRASES)
def test_the_prose_has_the_fields_words(phrase: str) -> None:
    said = re.compile(rf"(?<![\w'])({re.escape(phrase)})(?![\w'])", flags=re.IGNORECASE)
    held(phrase, [match.group() for match in said.finditer(prose())])


def test_no_function_is_longer_than_fifty_lines() -> None:
    functions = [node for node in definitions() if not isinstance(node, ast.ClassDef)]
    long = [node.name for node in functions if (node.end_lineno or 0) - node.lineno >= 50]
    held("long functions", long)


def test_the_package_grows_no_more() -> None:
    held("modules", MODULES)
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES]
    held("lines", range(sum(lines)))


def held(what: str, occurrences: object) -> None:
    """Fail where something occurs more often than its limit."""
    found = list(occurrences)  # type: ignore[call-overload]
    most = LIMITS[what]
    assert len(found) <= most, f"{len(found)} {what}, at most {most}: {found[:20]}"
