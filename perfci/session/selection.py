"""Pure: which cases ``-k`` means. Words joined by ``and``, ``or`` and ``not``, as in pytest."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable

from perfci.errors import UsageError
from perfci.model.case import Case

_WORD = re.compile(r"[()]|[^\s()]+")
"""No id and no tag has a parenthesis."""
_JOINING = frozenset({"and", "or", "not", "(", ")"})
_DEEPEST = 50
"""So many parentheses inside each other are nobody's selection."""


def select(cases: Iterable[Case], expression: str) -> tuple[Case, ...]:
    """Return the cases that ``expression`` selects; all for an empty one.

    A word is found anywhere in a case's id or equals one of its tags; with ``*`` or ``?`` it is
    a pattern for the whole id. ``not`` binds tighter than ``and``, that tighter than ``or``;
    parentheses bind tightest.
    """
    if not expression.strip():
        return tuple(cases)
    selects = _Reading(expression).whole()
    return tuple(case for case in cases if selects(case))


def words_of(expression: str) -> tuple[str, ...]:
    """Return the words of ``expression`` that stand for cases, in lower case."""
    found = _WORD.findall(expression.lower())
    return tuple(word for word in found if word not in _JOINING)


Selects = Callable[[Case], bool]


class _Reading:
    """An expression, read from its first word to its last: a method for each rule of grammar."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._words = _WORD.findall(expression.lower())
        self._at = 0

    def whole(self) -> Selects:
        selects = self._either(0)
        if self._at < len(self._words):
            raise self._wrong()
        return selects

    def _either(self, depth: int) -> Selects:
        terms = [self._both(depth)]
        while self._takes("or"):
            terms.append(self._both(depth))
        return lambda case: any(term(case) for term in terms)

    def _both(self, depth: int) -> Selects:
        terms = [self._term(depth)]
        while self._takes("and"):
            terms.append(self._term(depth))
        return lambda case: all(term(case) for term in terms)

    def _term(self, depth: int) -> Selects:
        wanted = True
        while self._takes("not"):
            wanted = not wanted
        if depth < _DEEPEST and self._takes("("):
            inner = self._either(depth + 1)
            if not self._takes(")"):
                raise self._wrong()
            return lambda case: inner(case) is wanted
        word = self._words[self._at] if self._at < len(self._words) else ""
        if not word or word in _JOINING:
            raise self._wrong()
        self._at += 1
        return lambda case: _matches(case, word) is wanted

    def _takes(self, word: str) -> bool:
        if self._at < len(self._words) and self._words[self._at] == word:
            self._at += 1
            return True
        return False

    def _wrong(self) -> UsageError:
        at_end = self._at >= len(self._words)
        where = "its end" if at_end else f"`{self._words[self._at]}`"
        return UsageError(
            "bad-selection",
            f"-k {self._expression!r} can't be read at {where}",
            "Write words joined by `and`, `or`, `not` and parentheses: "
            "-k 'encoder and not (slow or cuda)'.",
        )


def _matches(case: Case, word: str) -> bool:
    identity = case.id.lower()
    if "*" in word or "?" in word:
        # brackets belong to case ids here, not to the pattern
        return fnmatch.fnmatchcase(identity, word.replace("[", "[[]"))
    return word in identity or word in (tag.lower() for tag in case.tags)
