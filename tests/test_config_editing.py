"""Keys put into a user's configuration: nothing else of the file changes."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as any_of

from perfci.config.editing import with_keys
from perfci.config.loading import parse_config
from perfci.errors import UsageError

THEIRS = """\
# mine
[project]
name = 'x'   # keep

[tool.perfci]
budget =   "60s"
rounds = 5 # five

[tool.perfci.metrics.latency_p50]
threshold = 0.03

[tool.ruff]
line-length = 100
"""
KEYS = {("rounds",): 7, ("max_rounds",): 30, ("thresholds", "mixer", "latency_p50"): 0.08}


def test_the_keys_are_there_and_every_other_line_is_as_it_was() -> None:
    edited = with_keys(THEIRS, "pyproject.toml", KEYS)
    config = parse_config(edited, "pyproject.toml")
    assert (config.settings.rounds, config.settings.max_rounds) == (7, 30)
    assert config.policy.thresholds == {"mixer": {"latency_p50": 0.08}}
    kept = [line for line in THEIRS.splitlines() if not line.startswith("rounds")]
    left = iter(edited.splitlines())
    assert all(line in left for line in kept)  # in the same order
    assert "rounds = 7 # five" in edited
    assert "\n\n[tool.ruff]" in edited


def test_windows_line_ends_stay() -> None:
    theirs = THEIRS.replace("\n", "\r\n")
    edited = with_keys(theirs, "pyproject.toml", {("rounds",): 7})
    assert edited == theirs.replace("rounds = 5", "rounds = 7")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "perfci.toml"),
        ("rounds = 5\n", "perfci.toml"),
        ("[project]\nname = 'x'\n", "pyproject.toml"),
        ("tool.perfci.rounds = 5\n", "pyproject.toml"),
        ("[tool.perfci]\n[tool.perfci.thresholds.mixer]\ncold_start = 0.2\n", "other.toml"),
        ("[tool]\nperfci.rounds = 5\nruff.line-length = 9\n", "pyproject.toml"),
        ("[tool]\nperfci = {rounds = 5}\n", "pyproject.toml"),
        ("tool = {perfci = {rounds = 5}, ruff = {x = 1}}\n", "pyproject.toml"),
        ("thresholds = {other = {cold_start = 0.3}, mixer = {cold_start = 0.2}}\n", "perfci.toml"),
        ("thresholds.mixer.cold_start = 0.2\nrounds = 5\n", "perfci.toml"),
        ("thresholds.mixer = {cold_start = 0.2}\n[quiet]\npin = true\n", "perfci.toml"),
    ],
)
def test_any_shape_of_file_takes_them(text: str, where: str) -> None:
    policy = parse_config(with_keys(text, where, KEYS), where).policy
    assert policy.thresholds["mixer"]["latency_p50"] == 0.08
    assert ("cold_start" in text) == ("cold_start" in policy.thresholds["mixer"])


def test_a_key_where_a_table_should_be_is_refused() -> None:
    with pytest.raises(UsageError, match="no way to write") as caught:
        with_keys("[tool]\nperfci = 3\n", "pyproject.toml", KEYS)
    assert "tool.perfci.thresholds.mixer.latency_p50 = 0.08" in caught.value.advice


def test_dotted_keys_stay_in_their_table() -> None:
    theirs = "[tool]\nperfci.rounds = 5\nblack.line-length = 99  # theirs\n\n[project]\n"
    edited = with_keys(theirs, "pyproject.toml", {("thresholds", "enc", "latency_p50"): 0.08})
    assert tomllib.loads(edited)["tool"]["black"] == {"line-length": 99}
    assert "black.line-length = 99  # theirs\n" in edited


def test_what_would_be_no_configuration_is_refused() -> None:
    with pytest.raises(UsageError, match="max_rounds"):
        with_keys("max_rounds = 6\n", "perfci.toml", {("rounds",): 7})


TABLES: dict[str, dict[str, Any]] = {
    "rounds": {"rounds": 5},
    "quiet": {"quiet": {"pin": True, "gc": False}},
    "thresholds": {"thresholds": {"mixer": {"cold_start": 0.2}, "other": {"cold_start": 0.3}}},
    "metrics": {"metrics": {"latency_p50": {"threshold": 0.03, "gate": "fail"}}},
}
NEIGHBOURS = {"ruff": {"line-length": 99, "lint": {"select": ["E", "[tool]"]}}, "z": {"n": 1}}
NAN = "\n[last]\nnothing = nan\ntext = '''\n[tool.perfci]\nrounds = 3\n'''\n"


@any_of.composite
def layouts(draw: Callable[[Any], Any]) -> tuple[str, str]:
    """One configuration in any of the ways that TOML has to write its tables; and its name."""
    mine: dict[str, Any] = {}
    for name in draw(any_of.permutations(list(TABLES))):
        if draw(any_of.booleans()):
            mine |= TABLES[name]
    own = draw(any_of.booleans())
    whole = mine if own else {"tool": {**NEIGHBOURS, "perfci": mine}}
    text = written(draw, (), whole) + draw(any_of.sampled_from(["" if own else NAN, ""]))
    newline = draw(any_of.sampled_from(["\n", "\r\n"]))
    return text.replace("\n", newline), "perfci.toml" if own else "pyproject.toml"


def written(draw: Callable[[Any], Any], path: tuple[str, ...], table: dict[str, Any]) -> str:
    """The table's own lines, then those of its tables that have a header."""
    lines, headed = "", ""
    for key, value in table.items():
        if not isinstance(value, dict):
            lines += f"{key} = {literal(value)}  # {key}\n"
            continue
        match draw(any_of.sampled_from(["header", "dotted", "inline"])):
            case "header":
                inner = (*path, key)
                headed += f"\n[{'.'.join(inner)}]\n{written(draw, inner, value)}"
            case "dotted":
                lines += "".join(
                    f"{'.'.join((key, *rest))} = {literal(leaf)}\n" for rest, leaf in leaves(value)
                )
            case _:
                lines += f"{key} = {literal(value)}\n"
    return lines + headed


def leaves(table: dict[str, Any]) -> list[tuple[tuple[str, ...], Any]]:
    found: list[tuple[tuple[str, ...], Any]] = []
    for key, value in table.items():
        inner = leaves(value) if isinstance(value, dict) else [((), value)]
        found += [((key, *rest), leaf) for rest, leaf in inner]
    return found


def literal(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return "{" + ", ".join(f"{k} = {literal(v)}" for k, v in value.items()) + "}"
        case str():
            return f'"{value}"'
        case list():
            return "[" + ", ".join(map(literal, value)) + "]"
        case _:
            return str(value)


@given(layouts())
def test_whatever_the_layout_nothing_else_of_the_document_changes(layout: tuple[str, str]) -> None:
    text, where = layout
    try:
        edited = with_keys(text, where, KEYS)
    except UsageError as refused:
        pytest.fail(f"{refused}\n{text}")
    before, after = (dict(leaves(tomllib.loads(one))) for one in (text, edited))
    place = () if where == "perfci.toml" else ("tool", "perfci")
    wanted = {(*place, *path): value for path, value in KEYS.items()}
    assert repr(sorted(after.items())) == repr(sorted({**before, **wanted}.items()))
    assert ("\r\n" in text) <= ("\n" not in edited.replace("\r\n", ""))
    ours = {path[-1] for path in wanted}
    left = iter(edited.splitlines())
    theirs = [line for line in text.splitlines() if line and "{" not in line]
    assert all(line in left for line in theirs if line.split()[0].split(".")[-1] not in ours)
