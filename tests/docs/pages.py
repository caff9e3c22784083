"""The pages of the documentation, read as text."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = tuple(sorted((ROOT / "docs" / "results").glob("*.md")))
PAGES = (
    *(ROOT / f"{one}.md" for one in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")),
    ROOT / "llms.txt",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "reference").glob("*.md")),
    *RESULTS,
)


def page(name: str) -> str:
    """Return the text of a page of ``docs/``."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """Return what stands below ``heading``, given with its ``#``, until the next that ends it."""
    level = heading.index(" ")
    _, found, below = text.partition(f"\n{heading}\n")
    assert found, heading
    return re.split(rf"\n#{{1,{level}}} ", below, maxsplit=1)[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of the table rows in ``text``; a heading and its line of dashes are none."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    dashes = {at for at, row in enumerate(cells) if set("".join(row)) <= set("-:")}
    return [row for at, row in enumerate(cells) if at not in dashes and at + 1 not in dashes]


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to the headings of ``text``."""
    outside_code = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#{1,6} (.+)$", outside_code, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}
