"""The documentation stays short enough to be read. The limit only goes down."""

from __future__ import annotations

from tests.docs.pages import ROOT

MOST = 40_000


def test_readme_changelog_and_pages_have_no_more_words_than_allowed() -> None:
    pages = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))
    words = {str(page): len(page.read_text(encoding="utf-8").split()) for page in pages}
    assert sum(words.values()) <= MOST, words
