"""A comment's links lead into the event's own repository, at commits that GitHub confirmed."""

from __future__ import annotations

import re

import pytest

from perfci.report.exporters.markdown import render_comment
from perfci.report.links import known_links
from tests.report.examples import hostile_report, rich_report
from tests.report.hostile import NAMES

HEAD, BASE = "b" * 40, "a" * 40
REPOSITORY = "https://github.com/acme/speech"
LINKS = known_links(REPOSITORY, frozenset({HEAD}))


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
