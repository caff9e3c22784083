"""What a runner of GitHub Actions would take for a command is text when it was cleaned."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfci.model.case import Failure
from perfci.report.clean import (
    clean_block,
    clean_line,
    clean_lines,
    clean_prose,
    no_commands,
    sentences,
)
from perfci.report.exporters.html import render as render_page
from perfci.report.exporters.json import render as render_json
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.reading import read_report
from perfci.report.terminal import render_terminal
from tests.report.examples import FORMS, hostile_report, rendered, rich_report

PIECES = (
    "::error::x",
    "##[add-mask]e",
    "##",
    "[",
    "#",
    ":",
    " ",
    "\n",
    "\t",
    "\x1b[0m",
    "\u200b",
    "a",
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def commands(text: str) -> list[str]:
    """Return the lines that actions/runner's ActionCommand takes (TryParseV2, then TryParse)."""
    lines = re.split(r"\r\n|\r|\n", text)
    return [line for line in lines if line.lstrip().startswith("::") or "##[" in line]


@given(TEXTS, st.integers(1, 40))
@settings(max_examples=300)
def test_no_line_of_a_cleaned_text_is_a_command(text: str, limit: int) -> None:
    for said in (
        clean_line(text, limit),
        clean_block(text, 3, limit),
        clean_lines(text),
        no_commands(text),
    ):
        assert commands(said) == []


def test_all_that_is_said_can_still_be_read() -> None:
    assert clean_line("##[error] ::x") == "## [error] ::x"
    assert clean_line("  ::error::x") == ": :error::x"
    assert clean_lines("a\tb\n\n  ::error::\x1b[31mx\n  c::d") == "a    b\n\n  : :error::x\n  c::d"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["##[add-mask]e", "x\n::error::y", "::error::" * 30])
def test_no_format_holds_a_command(form: str, name: str) -> None:
    assert commands(rendered(hostile_report(name), form)) == []


@pytest.mark.parametrize("width", [40, 57, 80])
def test_a_wrapped_line_begins_no_command(width: int) -> None:
    report = hostile_report("words and more of them ::error::x " * 9)
    assert commands(render_terminal(report, width, False, verbose=True)) == []


def test_in_json_it_is_the_same_text() -> None:
    text = render_json(hostile_report("##[error]x"))
    assert json.loads(text)["results"][0]["case"] == "##[error]x"
    assert read_report(text) == hostile_report("##[error]x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no module named 'x'\nSet `build`.", "no module named 'x'. Set `build`."),
        (
            "it ended (code 1)\r\n`perfci list` shows more",
            "it ended (code 1). `perfci list` shows more",
        ),
        ("said:\nSet it.", "said:\nSet it."),
        ("it is so.\nSet it.", "it is so.\nSet it."),
        ("a list\n  of what a user wrote", "a list\n  of what a user wrote"),
    ],
)
def test_a_message_and_its_advice_are_two_sentences_on_one_line(text: str, expected: str) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run `perfci list`, or ``a b``", "run perfci list, or a b"),
        ("it failed\nSet `python`", "it failed. Set python"),
        ("an odd ` stays", "an odd ` stays"),
        ("`::error::x`", ": :error::x"),
        ("x#`#[group]`", "x## [group]"),
    ],
)
def test_prose_on_a_terminal_has_no_ticks_around_code(text: str, expected: str) -> None:
    assert clean_prose(text) == expected


def test_a_failures_advice_is_a_sentence_of_its_own_in_every_text() -> None:
    failure = Failure("a", "head", "import", "ImportError", "no module named 'x'\nSet `build`.")
    report = rich_report(failures=(failure,))
    assert "no module named 'x'. Set build." in " ".join(
        render_terminal(report, 100, False).split()
    )
    for text in (render_markdown(report), render_page(report)):
        assert re.search("x(?:&#39;|&#x27;|')\\. Set", text), text
