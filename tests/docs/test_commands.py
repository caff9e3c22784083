"""What a page shows is real: commands exist with their options, and code can be read."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent, indent

import click
import pytest
from ruamel.yaml import YAML, YAMLError

from perfci.cli.main import cli
from tests.docs.pages import PAGES, ROOT

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
"""An indented block. Its language is told by how it begins."""
LANGUAGE_FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
BEGINNINGS = {
    "yaml": re.compile(r"(?:- )?\w+:(?: |\n)"),
    "toml": re.compile(r"\[+[\w.-]+\]+\n|[\w.-]+ = "),
    "json": re.compile(r"[{\[]\s*[\"{\[]"),
    "python": re.compile(r"(?:import|from|def|class|with) \w|@\w"),
}
READERS: dict[str, Callable[[str], object]] = {
    "yaml": YAML(typ="safe").load,
    "toml": tomllib.loads,
    "json": json.loads,
    "python": ast.parse,
}


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the code of a page that is in one of the languages, fenced or indented."""
    for before, language, code in LANGUAGE_FENCE.findall(text):
        if language in READERS:
            yield language, dedent(code) if before else code
    for indented in BLOCK.findall(LANGUAGE_FENCE.sub("", text)):
        code = dedent(indented).lstrip("\n")
        for language, beginning in BEGINNINGS.items():
            if beginning.match(code):
                yield language, code
                break


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_code_on_a_page_can_be_read(path: Path) -> None:
    for language, code in blocks(path.read_text(encoding="utf-8")):
        read = READERS[language](code)
        assert language != "yaml" or isinstance(read, dict | list), code


@pytest.mark.parametrize(
    ("language", "form"),
    [
        ("yaml", "```yaml\nsteps:\n  - run: a env:\n      B: c\n```\n"),
        ("yaml", "    steps:\n      - run: a env:\n          B: c\n"),
        ("toml", "```toml\n[tool]\na = b\n```\n"),
        ("toml", "    [tool.perfci]\n    a = b\n"),
        ("json", '```json\n{"a": nan}\n```\n'),
        ("json", '    {"a": 1,}\n'),
        ("python", "```python\ndef a()\n```\n"),
        ("python", "    import a b\n"),
    ],
)
def test_code_that_cannot_be_read_is_found(language: str, form: str) -> None:
    ((found, code),) = blocks(f"Text:\n\n{form}\nMore.\n")
    assert found == language
    with pytest.raises((SyntaxError, ValueError, YAMLError)):
        READERS[language](code)
