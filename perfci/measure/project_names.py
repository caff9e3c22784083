"""The names of a tree's project: its packages, its modules and its distributions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from configparser import ConfigParser, Error
from pathlib import Path, PurePosixPath
from typing import Any

from perfci.files import parse_toml
from perfci.measure.checkout.build import ENVIRONMENT_FOLDER
from perfci.worker.own_packages import (
    NO_LIBRARY,
    VENDORED,
    normalised,
    packages_in,
    project_folders,
)

_NAME = re.compile(r"""\bname\s*=\s*["']([A-Za-z0-9._-]+)["']""")
"""The distribution's name, as a ``setup.py`` writes it."""
_USUAL = frozenset({"", "src"})
"""Folders from which single modules are imported."""


def packages_of(tree: Path, python_path: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the packages in ``tree`` that lie in no other package.

    Examples and tests may have folders that are named like public packages. These count only if
    ``python_path`` has the folder that they are in.
    """
    return tuple(
        sorted(
            name
            for name, folder in packages_in(str(tree)).items()
            if folder in python_path or not NO_LIBRARY & {*Path(folder).parts}
        )
    )


def modules_of(files: Iterable[str], python_path: Collection[str]) -> frozenset[str]:
    """Return the dotted names by which a tree's ``files`` can be imported, from any folder of it.

    What usually isn't installed, or is another project's, is left out. A module that is in no
    package counts only in a folder that is on ``python_path``, or usually is.
    """
    paths = [PurePosixPath(file) for file in files if file.endswith(".py")]
    packages = {str(path.parent) for path in paths if path.name == "__init__.py"}
    modules = set()
    for path in paths:
        if (NO_LIBRARY | VENDORED) & {*path.parts}:
            continue
        is_package = path.name == "__init__.py"
        parts = path.parent.parts if is_package else path.with_suffix("").parts
        for start in range(len(parts)):
            above = "/".join(parts[:start])
            if above in packages:
                break  # a package's module isn't imported from inside of the package
            single = start == len(parts) - 1 and not is_package
            if not single or above in {*_USUAL, *python_path}:
                modules.add(".".join(parts[start:]))
    return frozenset(modules - {"setup", "conftest", "noxfile"})


def distributions_of(tree: Path) -> tuple[str, ...]:
    """Return the normalised names that ``tree``'s project files declare; several in a monorepo."""
    names = (_declared_in(folder) for folder, _ in project_folders(str(tree)))
    return tuple(sorted({normalised(name) for in_folder in names for name in in_folder if name}))


def distributions_built_into(tree: Path, python_path: Sequence[str]) -> frozenset[str]:
    """Return the ``.dist-info`` folders of other projects that a build put into its tree."""
    own = distributions_of(tree)
    folders = (
        *(tree / ENVIRONMENT_FOLDER).glob("lib/*/site-packages"),
        *(tree / each for each in python_path),
    )
    return frozenset(
        path.name
        for folder in folders
        for path in folder.glob("*.dist-info")
        if normalised(path.name.partition("-")[0]) not in own
    )


def _declared_in(folder: Path) -> Iterator[str]:
    try:
        table = parse_toml(_text(folder / "pyproject.toml"))
    except ValueError:  # the commit's own mistake, which measuring it reports
        table = {}
    for section in (table.get("project"), _table(table.get("tool")).get("poetry")):
        yield str(_table(section).get("name", ""))
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(_text(folder / "setup.cfg"))
        yield parser.get("metadata", "name", fallback="")
    except Error:
        pass
    if written := _NAME.search(_text(folder / "setup.py")):
        yield written[1]


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(file: Path) -> str:
    return file.read_text("utf-8", "replace") if file.is_file() else ""
