"""docs/commands.md and the commands that click knows say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from perfci.cli.main import cli
from tests.docs.pages import page, rows, section

PAGE = page("commands.md")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-z])(?![\w-])")
CODE = re.compile(r"`([^`]+)`|^    (.+)$", re.MULTILINE)


def every(group: click.Group = cli, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield each command with its name; of a group, the group's own and its commands'."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from every(command, f"{before}{name} ")


COMMANDS = dict(every())
TOP = [name for name in COMMANDS if " " not in name]


def options_of(*names: str) -> set[str]:
    """Return every option of the commands, and of the commands in a group."""
    found = {"--help"}
    for name, command in COMMANDS.items():
        if any(name == one or name.startswith(f"{one} ") for one in names):
            for parameter in command.get_params(click.Context(command)):
                found |= {*parameter.opts, *parameter.secondary_opts}
    return found


def options_in(text: str) -> set[str]:
    """Return the options that stand in the code of ``text``, outside other programs' lines."""
    found: set[str] = set()
    for inline, block in CODE.findall(text):
        code = inline or block
        if not code.startswith("eval"):
            found |= set(OPTION.findall(code))
    return found


def test_the_page_has_a_section_for_each_command_and_for_nothing_else() -> None:
    headings = re.findall(r"^### perfci (.+)$", PAGE, flags=re.MULTILINE)
    assert sorted(headings) == sorted(TOP)


@pytest.mark.parametrize("name", TOP)
def test_each_section_has_an_example_and_names_options_that_exist(name: str) -> None:
    text = section(PAGE, f"### perfci {name}")
    examples = re.findall(r"^    .*\bperfci (\S+)", text, flags=re.MULTILINE)
    assert name in examples
    assert options_in(text) - options_of(name) == set()


@pytest.mark.parametrize("name", [name for name in COMMANDS if " " in name])
def test_each_command_of_a_group_is_in_the_groups_section(name: str) -> None:
    group, _, own = name.partition(" ")
    assert re.search(rf"[` ]{own}[` ]", section(PAGE, f"### perfci {group}"))


def table() -> list[tuple[str, str]]:
    """Return each option of the table of shared ones with a command that it is said to be of."""
    found = []
    for options, of, _ in rows(section(PAGE, "## Options of several commands")):
        commands = [one for one in re.findall(r"`([^`]+)`", of) if one in COMMANDS]
        found += [(one, name) for one in sorted(options_in(options)) for name in commands]
    return found


@pytest.mark.parametrize(("option", "name"), table())
def test_a_shared_option_is_one_of_each_command_named(option: str, name: str) -> None:
    assert option in options_of(name)


@pytest.mark.parametrize("row", rows(section(PAGE, "## Options of several commands")))
def test_a_shared_option_names_every_command_that_has_it(row: list[str]) -> None:
    options, of, more = row
    if of.startswith("all "):
        return
    named = re.findall(r"`([^`]+)`", f"{of} {more}")
    told = {re.sub(r" -.*", "", one) for one in named}
    for option in options_in(options):
        having = {
            name
            for name, command in COMMANDS.items()
            if any(
                option in (*one.opts, *one.secondary_opts)
                for one in command.get_params(click.Context(command))
            )
        }
        assert {one for one in having if not {one, one.partition(" ")[0]} & told} == set(), option
