"""docs/benchmarks.md and what ``-k`` selects say the same."""

from __future__ import annotations

import re
from itertools import product

import pytest

from perfci.measure.selection import select
from perfci.model.case import Case
from tests.docs.pages import page, rows, section

ENCODER = product((1, 16), ("eager", "default", "max-autotune"))
IDS = ("tokenise", *(f"encoder[batch={batch},mode={mode}]" for batch, mode in ENCODER))
"""The cases of the page's first example."""
CASES = tuple(Case(one, one.partition("[")[0], {}, "benchmarks/bench_a.py", 1, "") for one in IDS)
WORDS = [
    word
    for row in rows(section(page("benchmarks.md"), "## Choosing cases"))
    for word in re.findall(r"`([^`]{3,})`", row[0])
]


@pytest.mark.parametrize("word", WORDS)
def test_each_word_of_the_page_selects_some_of_its_cases_and_not_all(word: str) -> None:
    assert 0 < len(select(CASES, word)) < len(CASES)
