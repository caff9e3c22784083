"""Links between pages lead somewhere, and no page sends readers to a stranger's package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, RESULTS, ROOT, anchors, section

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


def test_the_list_of_pages_has_each_once_and_the_guide_is_numbered_in_order() -> None:
    contents = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = LINK.findall(contents)
    pages = [one for one in (ROOT / "docs").glob("*.md") if one.name != "README.md"]
    references = (ROOT / "docs" / "reference").glob("*.md")
    names = sorted([*(one.name for one in pages), *(f"reference/{one.name}" for one in references)])
    assert sorted(one for one in listed if not one.startswith(("../", "results/"))) == names
    numbers = re.findall(r"^(\d+)\. ", section(contents, "## Guide"), flags=re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]


def test_the_readme_leads_to_the_list_of_pages() -> None:
    assert "](docs/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_page_of_results_is_in_their_table() -> None:
    table = (ROOT / "docs" / "results" / "README.md").read_text(encoding="utf-8")
    names = [one.name for one in RESULTS]
    assert [one for one in names if one != "README.md" and f"]({one})" not in table] == []


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_no_page_has_a_command_that_names_a_stranger(path: Path) -> None:
    """The repository has no known owner: a command with a placeholder can't be typed."""
    assert "OWNER/" not in path.read_text(encoding="utf-8").replace("OWNER/NAME", "")


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_no_page_installs_perfci_by_its_bare_name(path: Path) -> None:
    """It is on no index: whoever registers the name there would get these users."""
    text = path.read_text(encoding="utf-8")
    by_name = re.compile(r"""^ +.*pip install ['"]?perfci(\[\w+\])?(['"=\s]|$)""", re.MULTILINE)
    extra_by_name = re.compile(r"""pip install ['"]?perfci\[\w+\](['"=\s]|$)""", re.MULTILINE)
    commands = [*by_name.finditer(text), *extra_by_name.finditer(text)]
    assert [one.group() for one in commands if " @ " not in text[one.start() : one.end() + 3]] == []


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_each_path_of_this_repository_that_a_page_names_is_there(path: Path) -> None:
    folders = "perfci|docs|examples|templates|tests"
    named = re.findall(rf"`((?:{folders})/[\w./-]+)`", path.read_text(encoding="utf-8"))
    made = ("perfci/schemas/", "docs/reference/", "tests/bench_")
    missing = [one for one in named if not (ROOT / one).exists() and not one.startswith(made)]
    assert missing == []
