"""Pure: which cases ``-k`` means. Words joined by ``and``, ``or`` and ``not``, as in pytest."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from perfci.errors import UsageError
from perfci.model.case import Case


def select(cases: Iterable[Case], expression: str) -> tuple[Case, ...]:
    """Return the cases that ``expression`` selects; all for an empty one.

    A word is found anywhere in a case's id or equals one of its tags; with ``*`` or ``?`` it is
    a pattern for the whole id. ``not`` binds tighter than ``and``, that tighter than ``or``.
    """
    alternatives = _parse(expression)
    return tuple(case for case in cases if not alternatives or _selected(case, alternatives))


Term = tuple[bool, str]
_PARENTHESES = frozenset("()")


def _parse(expression: str) -> list[list[Term]]:
    words = expression.lower().split()
    if not words:
        return []
    alternatives: list[list[Term]] = [[]]
    wanted, expecting_word = True, True
    for word in words:
        if _PARENTHESES.intersection(word):  # no id and no tag has any
            raise _wrong(expression, word)
        if word == "not" and expecting_word:
            wanted = not wanted
        elif word in {"and", "or"} and not expecting_word:
            expecting_word = True
            if word == "or":
                alternatives.append([])
        elif expecting_word and word not in {"and", "or"}:
            alternatives[-1].append((wanted, word))
            wanted, expecting_word = True, False
        else:
            raise _wrong(expression, word)
    if expecting_word:
        raise _wrong(expression, words[-1])
    return alternatives


def _wrong(expression: str, word: str) -> UsageError:
    return UsageError(
        "bad-selection",
        f"-k {expression!r} can't be read at `{word}`",
        "Write words joined by `and`, `or`, `not`, without parentheses: -k 'encoder and not slow'.",
    )


def _selected(case: Case, alternatives: list[list[Term]]) -> bool:
    return any(
        all(_matches(case, word) is wanted for wanted, word in terms) for terms in alternatives
    )


def _matches(case: Case, word: str) -> bool:
    identity = case.id.lower()
    if "*" in word or "?" in word:
        # brackets belong to case ids here, not to the pattern
        return fnmatch.fnmatchcase(identity, word.replace("[", "[[]"))
    return word in identity or word in (tag.lower() for tag in case.tags)
