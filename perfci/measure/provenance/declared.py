"""The distributions that a tree's project files declare, and their entry points.

What a ``setup.py`` computes isn't known; what it writes as a literal is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from configparser import ConfigParser, Error
from contextlib import suppress
from pathlib import Path
from typing import Any

from perfci.files import parse_toml
from perfci.worker.own_packages import normalised, project_folders

PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py")
SCRIPTS = "console_scripts"
EntryPoints = Mapping[str, Mapping[str, str]]
"""By group, what each name stands for: a module and, mostly, something in it."""

_NAME = re.compile(r"""\bname\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_SCRIPT = re.compile(r"""([\w.-]+)\s*=\s*([\w.]+:[\w.]+)""")
"""A console script as a ``setup.py`` writes it: its name, its module and function."""


def distributions_of(tree: Path) -> tuple[str, ...]:
    """Return the normalised names that ``tree``'s project files declare; several in a monorepo."""
    names = (_names(folder) for folder, _ in project_folders(str(tree)))
    return tuple(sorted({name for in_folder in names for name in in_folder}))


def entry_points_of(folder: Path) -> dict[str, EntryPoints]:
    """Return the entry points that the project in ``folder`` declares, by its normalised name.

    The name is empty where nothing says it.
    """
    merged: dict[str, dict[str, str]] = {}
    for points in (
        _points_in_pyproject(_toml(folder / "pyproject.toml")),
        _points_in_setup_cfg(folder / "setup.cfg"),
        _points_in_setup_py(_text(folder / "setup.py")),
    ):
        for group, names in points.items():
            merged.setdefault(group, {}).update(names)
    return dict.fromkeys(_names(folder) or {""}, merged)


def installed_entry_points(file: Path) -> EntryPoints:
    """Return what a distribution's ``entry_points.txt`` has. OSError where it can't be read."""
    return _points_of_ini(file.read_text("utf-8", "replace"))


def distribution_at(metadata: str) -> str:
    """Return the normalised name of the distribution with this folder of metadata."""
    name = Path(metadata).name
    for suffix in (".dist-info", ".egg-info"):
        name = name.removesuffix(suffix)
    return normalised(name.partition("-")[0])


# One project file each.


def _names(folder: Path) -> set[str]:
    table = _toml(folder / "pyproject.toml")
    sections = (table.get("project"), _table(table.get("tool")).get("poetry"))
    names = [str(name) for section in sections if (name := _table(section).get("name"))]
    names.append(_ini(_text(folder / "setup.cfg")).get("metadata", "name", fallback=""))
    if in_setup_py := _NAME.search(_text(folder / "setup.py")):
        names.append(in_setup_py[1])
    return {normalised(name) for name in names if name}


def _points_in_pyproject(table: Mapping[str, Any]) -> EntryPoints:
    project, tools = _table(table.get("project")), _table(table.get("tool"))
    poetry, flit = _table(tools.get("poetry")), _table(tools.get("flit"))
    groups = {
        **_table(flit.get("entrypoints")),
        **_table(poetry.get("plugins")),
        **_table(project.get("entry-points")),
    }
    scripts = [section for section in (project, poetry, flit) if _table(section.get("scripts"))]
    for script in scripts:
        groups[SCRIPTS] = {**_table(groups.get(SCRIPTS)), **script["scripts"]}
    groups["gui_scripts"] = _table(project.get("gui-scripts"))
    return _cleaned((group, _table(names).items()) for group, names in groups.items())


def _points_in_setup_cfg(file: Path) -> EntryPoints:
    parser = _ini(_text(file))
    if not parser.has_section("options.entry_points"):
        return {}
    groups = parser.items("options.entry_points")
    return _cleaned((group, _pairs(text.splitlines())) for group, text in groups)


def _points_in_setup_py(text: str) -> EntryPoints:
    """Return what stands there as a literal; of console scripts all that looks like one."""
    points: dict[str, Mapping[str, str]] = {}
    with suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.keyword) and node.arg == "entry_points":
                value = ast.literal_eval(node.value)
                if isinstance(value, str):
                    points |= _points_of_ini(value)
                elif isinstance(value, dict):
                    points |= _cleaned(
                        (group, _pairs([names] if isinstance(names, str) else names))
                        for group, names in value.items()
                    )
    if SCRIPTS not in points and (scripts := dict(_SCRIPT.findall(text))):
        points[SCRIPTS] = scripts
    return points


def _points_of_ini(text: str) -> EntryPoints:
    parser = _ini(text)
    return _cleaned((group, parser.items(group)) for group in parser.sections())


def _pairs(lines: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, separator, value = str(line).partition("=")
        if separator:
            yield name, value


def _cleaned(groups: Iterable[tuple[Any, Iterable[tuple[str, Any]]]]) -> EntryPoints:
    """Return groups without blanks, which mean nothing, and without those that are empty."""
    cleaned = {
        str(group): {str(name).strip(): _value(value) for name, value in names}
        for group, names in groups
    }
    return {group: names for group, names in cleaned.items() if names}


def _value(value: Any) -> str:
    if isinstance(value, dict):  # as Poetry has it, with extras
        value = value.get("reference", value.get("callable", ""))
    return re.sub(r"\s", "", str(value))


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _toml(file: Path) -> dict[str, Any]:
    try:
        return parse_toml(_text(file))
    except ValueError:  # another commit's mistake: its benchmarks will fail
        return {}


def _ini(text: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except Error:
        return ConfigParser()
    return parser


def _text(file: Path) -> str:
    return file.read_text("utf-8", "replace") if file.is_file() else ""
