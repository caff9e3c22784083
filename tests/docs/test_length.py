"""The pages stay short enough to be read. Generated tables belong in docs/results, uncounted.

28,000 words, and what came since: ancestors, the same code, bisect, why, modes, shapes, pages,
attacks, ranks on several nodes, installed copies and environments, looks from below.
"""

from __future__ import annotations

from tests.docs.pages import ROOT

MOST = 41_076


def test_readme_and_pages_have_no_more_words_than_allowed() -> None:
    pages = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    words = {one.name: len(one.read_text(encoding="utf-8").split()) for one in pages}
    assert sum(words.values()) <= MOST, words
