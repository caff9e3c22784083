"""Which distributions a tree says it is the source of. Reads its project files."""

from __future__ import annotations

import re
import tomllib
from configparser import ConfigParser, Error
from pathlib import Path

from perfci.worker.own_packages import normalised, packages_in, project_folders

_NAME = re.compile(r"""\bname\s*=\s*["']([A-Za-z0-9._-]+)["']""")


def distributions_of(tree: Path) -> tuple[str, ...]:
    """Return the normalised names that ``tree``'s project files declare; several in a monorepo."""
    found = {
        normalised(name)
        for folder, _ in project_folders(str(tree))
        for name in (
            *_in_pyproject(folder / "pyproject.toml"),
            *_in_setup_cfg(folder / "setup.cfg"),
            *_in_setup_py(folder / "setup.py"),
        )
    }
    return tuple(sorted(found))


def packages_of(tree: Path) -> tuple[str, ...]:
    """Return the names of the packages in ``tree`` that lie in no other."""
    return tuple(sorted(packages_in(str(tree))))


def _in_pyproject(file: Path) -> tuple[str, ...]:
    try:
        table = tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError:  # another commit's mistake: its benchmarks will tell
        return ()
    tool = table.get("tool", {})
    sections = (table.get("project", {}), tool.get("poetry", {}) if isinstance(tool, dict) else {})
    return tuple(
        str(section["name"])
        for section in sections
        if isinstance(section, dict) and section.get("name")
    )


def _in_setup_cfg(file: Path) -> tuple[str, ...]:
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(_text(file))
    except Error:
        return ()
    name = parser.get("metadata", "name", fallback="")
    return (name,) if name else ()


def _in_setup_py(file: Path) -> tuple[str, ...]:
    found = _NAME.search(_text(file))
    return (found[1],) if found else ()


def _text(file: Path) -> str:
    return file.read_text("utf-8", "replace") if file.is_file() else ""
