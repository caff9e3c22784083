"""``-k``: words as in pytest, on ids and tags."""

from __future__ import annotations

import pytest

from perfci.errors import UsageError
from perfci.measure.selection import select
from perfci.model.case import Case


def case(identity: str, *tags: str) -> Case:
    return Case(identity, identity, {}, "bench.py", 1, "0", tags=tags)


CASES = (case("encoder[batch=1]"), case("encoder[batch=16]", "slow"), case("tokenise", "cpu"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", [0, 1, 2]),
        ("ENCODER", [0, 1]),
        ("encoder and not slow", [0]),
        ("tokenise or batch=16", [1, 2]),
        ("not encoder", [2]),
        ("encoder[batch=1*", [0, 1]),
        ("*=1]", [0]),
        ("not not cpu", [2]),
        ("encoder AND NOT Slow", [0]),
        ("encoder and not (slow or cuda)", [0]),
        ("(slow or cpu) and not (encoder and batch=1)", [2]),
        ("not (not (tokenise))", [2]),
    ],
)
def test_words_select(words: str, expected: list[int]) -> None:
    assert select(CASES, words) == tuple(CASES[index] for index in expected)


@pytest.mark.parametrize(
    "words",
    ["and", "a and", "a b", "not", "or a", "a or or b", "(", "(a", "()", "a)", "a(b)", "(" * 9999],
)
def test_what_cannot_be_read_is_an_error(words: str) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        select(CASES, words)
