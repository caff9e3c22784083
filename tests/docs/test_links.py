"""Links between pages lead somewhere, and no page sends readers to a stranger's package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, RESULTS, ROOT, anchors

LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMES = [str(one.relative_to(ROOT)) for one in PAGES]


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_each_link_leads_to_a_file_and_each_anchor_to_a_heading(path: Path) -> None:
    wrong = []
    for link in LINK.findall(path.read_text(encoding="utf-8")):
        file, _, anchor = link.partition("#")
        if "://" in file:
            continue
        target = (path.parent / file) if file else path
        if not target.exists() or (
            anchor and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            wrong.append(link)
    assert wrong == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [one.name for one in (ROOT / "docs").glob("*.md") if f"docs/{one.name}" not in readme]
    assert missing == []


def test_every_page_is_in_the_contents_of_the_site() -> None:
    contents = (ROOT / "docs" / "site" / "contents.md").read_text(encoding="utf-8").splitlines()
    assert [one.name for one in (ROOT / "docs").glob("*.md") if one.stem not in contents] == []


def test_every_page_of_results_is_in_their_table_and_read_from_a_page_of_its_own() -> None:
    table = (ROOT / "docs" / "results" / "README.md").read_text(encoding="utf-8")
    pages = "".join(one.read_text(encoding="utf-8") for one in (ROOT / "docs").glob("*.md"))
    names = [one.name for one in RESULTS]
    assert [one for one in names if one != "README.md" and f"]({one})" not in table] == []
    assert [one for one in names if f"](results/{one}" not in pages] == []


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_no_page_installs_perfci_by_its_bare_name(path: Path) -> None:
    """It is on no index: whoever registers the name there would get these users."""
    text = path.read_text(encoding="utf-8")
    by_name = re.compile(r"""^ +.*pip install ['"]?perfci(\[\w+\])?(['"=\s]|$)""", re.MULTILINE)
    extra_by_name = re.compile(r"""pip install ['"]?perfci\[\w+\](['"=\s]|$)""", re.MULTILINE)
    commands = [*by_name.finditer(text), *extra_by_name.finditer(text)]
    assert [one.group() for one in commands if " @ " not in text[one.start() : one.end() + 3]] == []
