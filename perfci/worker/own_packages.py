"""Finds the packages of a tree, and where copies of them are installed in this Python."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import sys
import sysconfig
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from perfci.model.worker import Copy

VENDORED = frozenset(
    {"third_party", "vendor", "vendored", "_vendor", "extern", "external", "node_modules", "dist"}
)
"""Folders that usually hold other projects' code, or built files."""
NO_LIBRARY = frozenset({"tests", "test", "docs", "doc", "examples", "benchmarks", "scripts"})
"""Packages that many projects have but don't install."""
_DEEPEST = 4
"""Levels below the tree's root that are searched. Usual layouts have no package further below."""
_EDITABLE = re.compile(r"_+editable|_[\w.]*editable|.*\.(pth|egg-link)$")
"""Files that an editable install leaves in site-packages instead of the package."""
_NAME = re.compile(r"^Name:[ \t]*(\S+)", re.MULTILINE | re.IGNORECASE)
"""The field of a distribution's metadata."""


def packages_in(tree: str) -> dict[str, str]:
    """Return the top-level packages in ``tree``, each with the folder that holds it.

    Folders are relative to the tree. Hidden and vendored folders and virtual environments are left
    out, because they hold other projects.
    """
    folder_of_name: dict[str, str] = {}
    for folder, packages in project_folders(tree):
        for name in packages:
            folder_of_name.setdefault(name, os.path.relpath(folder, tree))
    return folder_of_name


def project_folders(tree: str) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield each folder of ``tree`` that isn't inside a package, with the packages it holds."""
    waiting = [(Path(tree), _DEEPEST)]
    while waiting:
        folder, deeper = waiting.pop(0)
        packages = []
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda item: item.name):
                if not entry.is_dir(follow_symlinks=False) or entry.name.startswith("."):
                    continue
                if (Path(entry) / "__init__.py").is_file():
                    packages.append(entry.name)
                elif entry.name not in VENDORED and not (Path(entry) / "pyvenv.cfg").exists():
                    waiting += [(Path(entry), deeper - 1)] if deeper else []
        yield folder, tuple(packages)


def installed_copies(project: Collection[str], checkout: str) -> tuple[Copy, ...]:
    """Return installed copies of ``project``'s distributions, and all installed from ``checkout``.

    ``project`` has normalised names. An editable install has few or none of the project's files.
    """
    copies = []
    for distribution in importlib.metadata.distributions():
        name, source = _name(distribution), _source(_direct_url(distribution))
        if name in project or f"{source}/".startswith(f"{checkout}/"):
            paths = tuple(sorted({_real(path) for path in _places(distribution)}))
            if paths:
                copies.append(Copy(name, paths))
    return tuple(dict.fromkeys(copies))


def other_sources(project: Collection[str], tree: str, checkout: str) -> tuple[str, ...]:
    """Return the folders outside ``tree`` and ``checkout`` from which this Python has the project.

    Such folders are other clones or worktrees of the repository, installed here as editable.
    Returns none if ``checkout`` is empty.
    """
    if not checkout:
        return ()
    names = set(packages_in(tree)) - NO_LIBRARY
    pythons = tuple(f"{folder}{os.sep}" for folder in python_folders())
    sources = {
        os.path.realpath(entry)
        for entry in sys.path
        if not entry.endswith("-packages")  # such as an environment beneath this one
        and any((Path(entry) / name / "__init__.py").is_file() for name in names)
    }
    for distribution in importlib.metadata.distributions():
        if _name(distribution) in project:
            sources.add(_source(_direct_url(distribution)))
    known = (f"{tree}{os.sep}", f"{checkout.rstrip(os.sep)}{os.sep}", *pythons)
    folders = (f"{folder}{os.sep}" for folder in sources if os.path.isdir(folder))  # noqa: PTH112
    return tuple(sorted(folder for folder in folders if not folder.startswith(known)))


def normalised(name: str) -> str:
    """Return a distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def python_folders() -> tuple[str, ...]:
    """Return the folders of this Python, its standard library and its installed packages."""
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    folders = {sys.prefix, sys.base_prefix, *(paths[name] for name in names)}
    return tuple(sorted(os.path.realpath(folder) for folder in folders))


def _name(distribution: importlib.metadata.Distribution) -> str:
    """Return the normalised name. ``metadata`` would parse all of the text, which takes 1 ms."""
    files = ("METADATA", "PKG-INFO", "")  # the last is a file that stands for its folder
    text = next(filter(None, map(distribution.read_text, files)), "")
    written = _NAME.search(text)
    return normalised(written[1]) if written else ""


def _real(path: str) -> str:
    return os.path.realpath(path) + (os.sep if path.endswith(os.sep) else "")


def _source(noted: Mapping[str, Any]) -> str:
    """Return the folder that a distribution was installed from, or an empty text."""
    url = str(noted.get("url", ""))
    return os.path.realpath(url.removeprefix("file://")) if url.startswith("file://") else ""


def _direct_url(distribution: importlib.metadata.Distribution) -> dict[str, Any]:
    """Return the installer's record of the distribution's origin (PEP 610). Empty without one."""
    noted = json.loads(distribution.read_text("direct_url.json") or "{}")
    return noted if isinstance(noted, dict) else {}


def _places(distribution: importlib.metadata.Distribution) -> Iterator[str]:
    """Yield the distribution's top-level packages, as folders, and its files outside of packages.

    A folder without ``__init__.py`` isn't yielded, because several distributions may share it.
    """
    if distribution.files is None:
        base = str(distribution.locate_file("")).rstrip("/")
        if base.endswith(".egg"):
            yield base
        return
    files = [PurePosixPath(str(file)) for file in distribution.files]
    packages = {file.parent for file in files if file.name == "__init__.py"}
    for file in files:
        top = file.parts[0]
        if top in {"..", "/"} or top.endswith((".dist-info", ".egg-info")) or top == "__pycache__":
            continue
        if _EDITABLE.match(top):
            continue
        inside = [folder for folder in reversed(file.parents) if folder in packages]
        path = str(distribution.locate_file(str(inside[0] if inside else file)))
        yield path + os.sep if inside else path
