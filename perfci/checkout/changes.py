"""Which changes between two commits a benchmark should exercise: code, and what it runs on."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from perfci.checkout.command import git

KINDS = ("sources", "requirements", "locks", "packaging", "submodules", "ci")

_SUBMODULE = "160000"
_SOURCES = frozenset(
    {
        *(".py", ".pyx", ".pxd", ".pth", ".so", ".pyd", ".rs", ".f90"),
        *(".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp"),
    }
)
_NOT_MEASURED = frozenset({"test", "tests", "doc", "docs"})
"""Folders whose files no benchmark of the library runs."""
_NOT_IMPORTED = ("test_*.py", "*_test.py", "conftest.py", "noxfile.py", "tasks.py")
_LOCKS = ("*.lock", "conda-lock.yml", "pylock.toml", "pylock.*.toml")
_REQUIREMENTS = (
    *("*requirements*.txt", "*requirements*.in", "constraints*.txt", "Pipfile", "pixi.toml"),
    *("environment.yml", "environment.yaml"),
)
_PACKAGING = ("setup.py", "setup.cfg", "entry_points.txt", "CMakeLists.txt", "meson.build")
_CI_FILES = (
    *("Dockerfile*", "*.dockerfile", ".gitlab-ci.yml", "Jenkinsfile", "azure-pipelines.yml"),
    *(".python-version", ".tool-versions", "tox.ini"),
)
_CI_FOLDERS = (
    *(".github/workflows/", ".github/actions/", ".gitlab/", ".forgejo/", ".gitea/"),
    *(".circleci/", ".buildkite/", ".devcontainer/"),
)
_OF_PROJECT = ("dependencies", "optional-dependencies", "requires-python", "dynamic")
_ENTRY_POINTS = ("scripts", "gui-scripts", "entry-points")
_BUILDERS = ("setuptools", "hatch", "flit", "maturin", "scikit-build", "meson-python", "pdm", "uv")
_OF_POETRY = ("dependencies", "group", "extras", "build", "packages", "scripts", "plugins")


def relevant_changes(base: Path, head: Path, trees: tuple[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the changed files by kind: sources, requirements, locks, packaging, submodules, ci.

    ``base`` and ``head`` are worktrees of the git ``trees``. Prose, data and tests are left out.
    Raises OutsideError where git fails.
    """
    kinds: dict[str, list[str]] = {}
    for name, modes in _changed(head, trees):
        kind = "submodules" if _SUBMODULE in modes else kind_of(name)
        if name == "pyproject.toml" or name.endswith("/pyproject.toml"):
            kind = "packaging" if _runs_otherwise(base / name, head / name) else ""
        if kind:
            kinds.setdefault(kind, []).append(name)
    return {kind: tuple(kinds[kind]) for kind in KINDS if kind in kinds}


def kind_of(name: str) -> str:
    """Return the kind of the changed file ``name``; empty where no benchmark need exercise it."""
    path = PurePosixPath(name)

    def is_named(patterns: tuple[str, ...]) -> bool:
        return any(fnmatch(path.name, pattern) for pattern in patterns)

    not_measured = _NOT_MEASURED.intersection(path.parts[:-1]) or is_named(_NOT_IMPORTED)
    listed = path.parent.name == "requirements" and path.suffix == ".txt"
    kinds = (
        ("ci", name.startswith(_CI_FOLDERS) or is_named(_CI_FILES)),
        ("submodules", path.name == ".gitmodules"),
        ("", not_measured),
        ("locks", is_named(_LOCKS)),
        ("requirements", is_named(_REQUIREMENTS) or listed),
        ("packaging", is_named(_PACKAGING)),
        ("sources", path.suffix in _SOURCES),
    )
    return next((kind for kind, holds in kinds if holds), "")


def _changed(root: Path, trees: tuple[str, str]) -> list[tuple[str, tuple[str, str]]]:
    output = git(root, "diff-tree", "-r", "--raw", "--no-renames", "-z", *trees)
    fields = iter(output.split("\0"))
    entries = ((entry, next(fields)) for entry in fields if entry)
    return [
        (name, (before, after))
        for entry, name in entries
        for before, after, *_ in [entry.removeprefix(":").split()]
    ]


def _runs_otherwise(base: Path, head: Path) -> bool:
    """Say whether dependencies, entry points or the build differ; where unreadable, yes."""
    try:
        before, after = (
            tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            for path in (base, head)
        )
    except (OSError, ValueError):
        return True
    return _what_runs(before) != _what_runs(after)


def _what_runs(pyproject: Mapping[str, Any]) -> list[Any]:
    def parts(table: Any, names: tuple[str, ...]) -> list[Any]:
        return [table.get(name) if isinstance(table, dict) else None for name in names]

    tools = pyproject.get("tool")
    poetry = parts(tools, ("poetry",))[0]
    return [
        *parts(pyproject, ("build-system", "dependency-groups")),
        *parts(pyproject.get("project"), (*_OF_PROJECT, *_ENTRY_POINTS)),
        *parts(tools, _BUILDERS),
        *parts(poetry, _OF_POETRY),
    ]
