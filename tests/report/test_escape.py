"""Strings from strangers in GitHub's Markdown."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable

import pytest

from perfci.report.clean import clean_line, code, escape, fence, prose
from perfci.report.exporters.markdown import MARKER
from perfci.report.exporters.markdown import render as render_markdown
from tests.report.examples import hostile_report
from tests.report.hostile import NAMES
from tests.report.rendered import Rendered, with_cmark_gfm, with_markdown_it

needs_cmark = pytest.mark.skipif(
    importlib.util.find_spec("cmarkgfm") is None, reason="cmarkgfm is not installed"
)
RENDERERS = [
    pytest.param(with_markdown_it, id="markdown-it"),
    pytest.param(with_cmark_gfm, id="cmark-gfm", marks=needs_cmark),
]
LATER = (
    r"(?:^|\W)@[a-z0-9]",
    r"#\d",
    r"\bGH-\d",
    r":[\w+-]+:",
    r"https?://\w",
    r"www\.",
)
"""What GitHub turns into links and images after the Markdown, in text that isn't code."""
TABLE = {"table", "thead", "tbody", "tr", "th", "td", "code"}


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_in_a_table_cell_is_text_and_nothing_else(
    name: str, render: Callable[[str], Rendered]
) -> None:
    for written in (escape(name), code(name)):
        page = render(f"| a | b |\n|---|---|\n| {written} | end |\n")
        assert set(page.tags) <= TABLE
        assert len(page.cells) == 2
        assert page.cells[1].strip() == "end"
        assert page.cells[0].replace("\u200b", "").strip() == clean_line(name)
        assert not [p for p in LATER if re.search(p, page.plain, re.IGNORECASE)]


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_at_the_start_of_a_line_is_text_and_nothing_else(
    name: str, render: Callable[[str], Rendered]
) -> None:
    page = render(f"before\n\n- {escape(name)}\n\n{escape(name)}\n\nbefore\n{escape(name)}\n")
    assert set(page.tags) <= {"p", "ul", "li"}
    assert not [p for p in LATER if re.search(p, page.plain, re.IGNORECASE)]


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_comment_full_of_a_name_holds_no_element_of_the_names(
    name: str, render: Callable[[str], Rendered]
) -> None:
    own = TABLE | {"p", "strong", "ul", "li", "pre", "details", "summary", "comment", "blockquote"}
    own |= {"h3", "wbr"}
    text = render_markdown(hostile_report(name))
    page = render(text)
    assert set(page.tags) <= own
    assert page.tags.count("comment") == 1
    assert text.count("<!--") == 1
    calm = render(render_markdown(hostile_report("name")))
    assert len(page.cells) == len(calm.cells)
    assert page.tags.count("details") == calm.tags.count("details")
    assert not [p for p in LATER if re.search(p, page.plain, re.IGNORECASE)]


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_sentence_with_code_is_text_and_code_and_nothing_else(
    name: str, render: Callable[[str], Rendered]
) -> None:
    for text in (name, f"call `{name}`: {name}", f"`{name}"):
        page = render(f"| a | b |\n|---|---|\n| {prose(text)} | end |\n")
        assert set(page.tags) <= TABLE
        assert len(page.cells) == 2
        assert page.cells[1].strip() == "end"
        assert not [p for p in LATER if re.search(p, page.plain, re.IGNORECASE)]
    assert prose("run `a_b`, not `c.") == "run <code>a_b</code>, not &#96;c."


def test_the_marker_is_the_first_line_whatever_the_names_say() -> None:
    text = render_markdown(hostile_report(MARKER))
    assert text.startswith(MARKER + "\n")
    assert text.count(MARKER) == 1


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize(
    "log", ["```\nout\n```", "`" * 40 + "\nx", "~~~\nx", "</details>\n<!-- perfci -->", "a\r\nb"]
)
def test_a_log_cannot_leave_its_fence(log: str, render: Callable[[str], Rendered]) -> None:
    page = render(f"{fence(log)}\n\nend\n")
    assert page.tags == ["pre", "code", "p"] or page.tags == ["pre", "p"]
    assert page.plain.strip() == "end"
    assert "<!--" not in fence(log)


def test_colours_go_with_their_whole_sequence() -> None:
    assert clean_line("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07") == "red link"
