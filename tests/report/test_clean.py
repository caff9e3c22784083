"""What a runner of GitHub Actions would take for a command is text when it was cleaned."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfci.report.clean import clean_block, clean_line, clean_lines, no_commands
from perfci.report.exporters.json import render as render_json
from perfci.report.reading import read_report
from perfci.report.terminal import render_terminal
from tests.report.examples import FORMS, hostile_report, rendered

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
