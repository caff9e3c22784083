"""A comment's links lead into the event's own repository, at commits that GitHub confirmed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from perfci.report.exporters.markdown import render_comment
from perfci.report.links import known_links
from tests.report.examples import hostile_report, rich_report
from tests.report.hostile import NAMES

HEAD, BASE = "b" * 40, "a" * 40
REPOSITORY = "https://github.com/acme/speech"
LINKS = known_links(REPOSITORY, frozenset({HEAD}))


def clean_head() -> str:
    report = rich_report()
    return render_comment([replace(report, head=replace(report.head, dirty=False))], links=LINKS)


def test_a_known_commit_and_its_lines_are_links_and_another_is_not() -> None:
    text = clean_head()
    assert f"[<code>bbbbbbbbbbbb</code>]({REPOSITORY}/commit/{HEAD})" in text
    assert f"[<code>encoder.py:41</code>]({REPOSITORY}/blob/{HEAD}/lib/encoder.py#L41)" in text
    assert "<code>aaaaaaaaaaaa</code> →" in text
    assert BASE not in re.findall(r"\]\((.*?)\)", text)


def test_lines_of_a_working_tree_are_no_links() -> None:
    assert "/blob/" not in render_comment([rich_report()], links=LINKS)


@pytest.mark.parametrize(
    "file", ["/etc/passwd", "../x.py", "a/../../x.py", "a//b", "", "a\nb", "."]
)
def test_a_path_that_is_not_of_the_tree_is_no_link(file: str) -> None:
    assert "](" not in LINKS.place(HEAD, file, 3)


@pytest.mark.parametrize("name", [*NAMES, "a)b", "a](http://evil.example)", "a?b#c", "a b"])
def test_no_name_leads_elsewhere(name: str) -> None:
    cmarkgfm = pytest.importorskip("cmarkgfm")
    from cmarkgfm.cmark import Options

    text = render_comment([hostile_report(name)], links=LINKS)
    page = cmarkgfm.github_flavored_markdown_to_html(text, options=Options.CMARK_OPT_UNSAFE)
    targets = re.findall(r'href="([^"]*)"', page)
    assert targets
    assert all(re.fullmatch(rf"{REPOSITORY}/[\w/%.~#-]+", one) for one in targets)


@pytest.mark.parametrize("address", ["", "javascript:x", "https://a b/c", "https://github.com)/x"])
def test_an_address_that_is_none_makes_no_links(address: str) -> None:
    assert "](" not in render_comment(
        [rich_report()], links=known_links(address, frozenset({HEAD}))
    )


def test_the_page_is_linked_where_its_address_is_plain() -> None:
    run = f"{REPOSITORY}/actions/runs/17#artifacts"
    text = render_comment([rich_report()], links=known_links("", frozenset(), run))
    assert f"\n[Every row, drawn]({run})\n" in text
    for odd in ("", "javascript:alert(1)", "https://h/a b", "https://h/)[x](https://evil"):
        assert "Every row" not in render_comment(
            [rich_report()], links=known_links("", frozenset(), odd)
        )
