"""Each command that a page shows exists, and so do the options that it is shown with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent

import click
import pytest
from ruamel.yaml import YAML

from perfci.cli.main import cli
from tests.docs.pages import ROOT

GUIDE = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)|^    +(.+)$", re.MULTILINE)
OPTION = re.compile(r"--?[a-z][a-z-]*")
CALL = re.compile(r"(?:^|[\s\"'(;])perfci ([a-z][a-z-]*.*)")


def every(group: click.Group = cli, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield each command with its name; of a group, the group's own and its commands'."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from every(command, f"{before}{name} ")


OPTIONS = {
    name: {"--help", "-h"}
    | {
        option
        for parameter in command.get_params(click.Context(command))
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    for name, command in every()
}


def calls(text: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the commands of perfci in the code of ``text``, each with its options."""
    indented = FENCE.sub(lambda fence: indent(fence[1], "    "), text.replace("\\\n", " "))
    for groups in CODE.findall(indented):
        code = "".join(groups).partition(" #")[0]
        for call in CALL.findall(code):
            try:
                words = shlex.split(call)
            except ValueError:  # a part of a line, in quotes of the whole
                words = call.split()
            name = " ".join(words[:2]) if " ".join(words[:2]) in OPTIONS else words[0]
            given = {word.partition("=")[0] for word in words if OPTION.match(word)}
            yield name, {word for word in given if OPTION.fullmatch(word)}


@pytest.mark.parametrize("path", GUIDE, ids=[path.name for path in GUIDE])
def test_the_commands_of_a_page_exist_with_their_options(path: Path) -> None:
    wrong = [
        (name, options - OPTIONS.get(name, set()))
        for name, options in calls(path.read_text(encoding="utf-8"))
        if name not in OPTIONS or not options <= OPTIONS[name]
    ]
    assert wrong == []


def test_the_guide_shows_each_command() -> None:
    shown = {name for path in GUIDE for name, _ in calls(path.read_text(encoding="utf-8"))}
    assert set(OPTIONS) - {"baseline"} <= shown


BLOCK = re.compile(r"(?:^    .*\n|^\n(?=    ))+", re.MULTILINE)
YAML_START = re.compile(r"(?:- )?\w+:(?: |$)")


def yaml_blocks() -> list[str]:
    """Return the indented blocks of the guide's pages that begin as YAML does."""
    blocks = [dedent(block) for path in GUIDE for block in BLOCK.findall(path.read_text("utf-8"))]
    return [block for block in blocks if YAML_START.match(block.lstrip())]


@pytest.mark.parametrize("block", yaml_blocks(), ids=lambda block: block.split()[0])
def test_yaml_on_a_page_can_be_read(block: str) -> None:
    assert isinstance(YAML(typ="safe").load(block), dict | list)
