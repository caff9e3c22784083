"""Whatever a stranger's strings are, in every format they stay where they belong."""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections import Counter
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree as ET

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from perfci.metrics import METRICS
from perfci.model.report import Report
from perfci.model.run import Environment
from perfci.report.exporters.json import render as render_json
from perfci.report.exporters.junit import render as render_junit
from perfci.report.exporters.markdown import MARKER, render_comment
from perfci.report.reading import read_report
from perfci.report.terminal import render_terminal
from tests.report.examples import hostile_report
from tests.report.hostile import NAMES
from tests.report.rendered import Rendered, with_cmark_gfm
from tests.report.test_escape import LATER, TABLE

PIECES = (
    *NAMES, "`", "|", "[", "](", "!", "<", ">", "&", ";", "@", "#", ":", "//", "www.", "\n", "\r",
    "\t", " ", "~", "*", "_", "\\", "-", "=", "+", "1.", "http://", "GH-1", "&#64;", "&commat;",
    "%%{init: {}}%%", '"', "]", "```mermaid", "\x1b[2J", "\x1b]8;;http://x\x07", "\x9b31m", "\x85",
    "<!-- perfci head=", "]]>", "＝1", "a", "Z", "9", "\udc80",
)  # fmt: skip
STRANGERS = st.lists(
    st.one_of(st.sampled_from(PIECES), st.characters(exclude_categories=())), max_size=8
).map("".join)
OWN = TABLE | {
    "p", "strong", "ul", "li", "pre", "details", "summary", "comment", "blockquote",
    "h3", "h4", "wbr",
}  # fmt: skip
COUNTED = (
    "table", "tr", "td", "th", "details", "summary", "pre", "blockquote", "comment", "strong",
)  # fmt: skip
"""No "code": text between backticks is code, whoever wrote it. No element is within it."""
SHA = "c" * 40
needs_cmark = pytest.mark.skipif(
    importlib.util.find_spec("cmarkgfm") is None, reason="cmarkgfm is not installed"
)
examples = settings(max_examples=100)


def in_two_environments(name: str) -> tuple[Report, Report]:
    report = hostile_report(name)
    # no command measures a working tree again, and none is written of a name that -k can't take
    report = replace(report, head=replace(report.head, dirty=True))
    other = Environment(f"{name} other", {name: f"{name}? other"})
    return report, replace(report, environment=other)


@cache
def calm_count() -> dict[str, int]:
    """Return what there is in the comment when the stranger is a friend."""
    text = render_comment(in_two_environments("name"), head_sha=SHA)
    return counted(with_cmark_gfm(text))


def counted(page: Rendered) -> dict[str, int]:
    tags = Counter(page.tags)
    return {tag: tags[tag] for tag in COUNTED}


@needs_cmark
@given(STRANGERS)
@example(":100")  # an emoji, where a colon of the template's own follows
@example("`x`")
@example("</details>")
@examples
def test_in_a_comment_a_string_is_text_and_nothing_else(name: str) -> None:
    assume(0 < len(name) < 100)  # an empty one has no <code>, a long one is no reason in a cell
    text = render_comment(in_two_environments(name), head_sha=SHA)
    page = with_cmark_gfm(text)
    assert set(page.tags) <= OWN
    assert counted(page) == calm_count()
    assert page.within_code <= {"wbr"}
    assert not [p for p in LATER if re.search(p, page.plain, re.IGNORECASE)]
    assert text.splitlines()[:2] == [MARKER, f"<!-- perfci head={SHA} -->"]
    assert text.count("<!--") == 2


@given(STRANGERS, st.booleans(), st.booleans())
@examples
def test_at_a_terminal_nothing_invisible_is_printed(name: str, color: bool, verbose: bool) -> None:
    report = replace(hostile_report(name), shard="2/4")
    text = render_terminal(report, 80, color, verbose=verbose)
    if color:
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)  # rich's own colours
    odd = {one for one in text if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    assert odd <= {"\n"}


@given(STRANGERS)
@examples
def test_junit_stays_well_formed_and_shows_no_control_character(name: str) -> None:
    suite = ET.fromstring(render_junit(hostile_report(name)).encode())
    calm = ET.fromstring(render_junit(hostile_report("name")).encode())
    assert [one.tag for one in suite.iter()] == [one.tag for one in calm.iter()]
    said = "".join(text for one in suite.iter() for text in (*one.attrib.values(), one.text or ""))
    assert not [one for one in said if unicodedata.category(one) == "Cc" and one != "\n"]


@given(st.text(max_size=40))
@examples
def test_what_was_read_back_renders_as_what_was_written(name: str) -> None:
    assume(name not in METRICS)
    report = hostile_report(name)
    assert render_comment([read_report(render_json(report))]) == render_comment([report])
