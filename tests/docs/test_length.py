"""The guide stays short enough to be read: the README and the pages of docs/.

Pages made from the code (docs/reference) and tables of measurements (docs/results) don't count.
"""

from __future__ import annotations

from tests.docs.pages import ROOT

MOST = 40_000


def test_readme_and_pages_have_no_more_words_than_allowed() -> None:
    guide = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    words = {page.name: len(page.read_text(encoding="utf-8").split()) for page in guide}
    assert sum(words.values()) <= MOST, words
