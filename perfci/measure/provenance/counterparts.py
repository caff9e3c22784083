"""Installed copies of the repository's files, and the entry points that its projects declare.

A project's packages may lie anywhere in its repository (``third_party/``, ``dist/``, ten folders
deep), and an installed copy doesn't say which file it was made from. So an installed file is
compared with git's: first with the files of the same name in the sides' trees, then with the
contents of all revisions. Of a ``setup.py`` only literals are known, not what it computes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from configparser import ConfigParser, Error
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from perfci.files import parse_toml
from perfci.measure.checkout.trees import blob_id
from perfci.worker.own_packages import NO_LIBRARY, normalised, project_folders

_SMALLEST_BYTES = 24
"""A shorter file (an empty ``__init__.py``) has the same content in any repository."""
_COMMON_NAMES = frozenset({"__init__.py", "__main__.py", "conftest.py", "setup.py"})
"""Names that say nothing of a file."""
_MOST_NAMES = 2000
"""If a change has more file names, single files aren't looked for among what is installed."""
PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py")
_PROJECTS = (*PROJECT_FILES, "CMakeLists.txt", "meson.build")
"""Each of these files makes its folder the root of a project."""
_COMPILED = (
    *(".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".cu", ".cuh", ".pyx", ".pxd", ".rs", ".f90"),
)
SCRIPTS = "console_scripts"
EntryPoints = Mapping[str, Mapping[str, str]]
"""By group and name: a module and, mostly, an object in it (``module:object``)."""
_NAME = re.compile(r"""\bname\s*=\s*["']([A-Za-z0-9._-]+)["']""")
"""The distribution's name, as a ``setup.py`` writes it."""
_SCRIPT = re.compile(r"""([\w.-]+)\s*=\s*([\w.]+:[\w.]+)""")
"""A console script as a ``setup.py`` writes it: its name, its module and function."""


@dataclass(frozen=True, slots=True)
class Resemblance:
    """A match of an installed file, which isn't the side's own, with the repository's ``path``.

    The match is ``certain`` if a revision of the repository has the installed file's content.
    """

    path: str
    certain: bool


_STARTS = re.compile(r"^from ([\w.]+) import ([\w.]+)", re.MULTILINE)
"""The line of an installed console script that imports what it runs."""


class Counterparts:
    """The files of the sides' trees: by each tree's root, git's ids of the files' contents.

    ``known`` takes such ids and returns those that any revision of the repository has.
    """

    def __init__(
        self,
        trees: Mapping[str, Mapping[str, str]],
        known: Callable[[Iterable[str]], Collection[str]],
    ) -> None:
        self._trees = trees
        self._known = known
        self._paths = frozenset(path for tree in trees.values() for path in tree)
        self._by_name: dict[str, list[str]] = {}
        for path in sorted(self._paths):
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)
        self._changed = frozenset(
            path for path in self._paths if len({tree.get(path) for tree in trees.values()}) > 1
        )
        blobs = (blob for tree in trees.values() for blob in tree.values())
        self._digits = len(next(blobs, "")) or 40
        self._declared = {root: self._entry_points(root) for root in trees}
        self._ids: dict[tuple[str, int, int], str] = {}

    def _entry_points(self, root: str) -> dict[str, EntryPoints]:
        """Return the entry points of the projects in ``root`` whose files differ between the sides.

        They are by the name of the distribution.
        """
        changed = map(PurePosixPath, self._changed)
        folders = {path.parent for path in changed if path.name in PROJECT_FILES}
        points: dict[str, EntryPoints] = {}
        for folder in sorted(folders):
            points |= entry_points_of(Path(root, folder))
        return points

    def changed_distributions(self) -> tuple[str, ...]:
        """Return the distributions whose entry points the sides declare differently."""
        names = {name for declared in self._declared.values() for name in declared if name}
        return tuple(sorted(name for name in names if self._changed_groups(name)))

    def _changed_groups(self, distribution: str) -> frozenset[str]:
        sides = [declared.get(distribution, {}) for declared in self._declared.values()]
        groups = {group for points in sides for group in points}
        return frozenset(
            group
            for group in groups
            if any(side.get(group) != sides[0].get(group) for side in sides)
        )

    def declares_otherwise(self, root: str, file: str, group: str) -> bool:
        """Return whether an installed ``entry_points.txt`` differs from the side's at ``root``.

        Only ``group`` is compared, or every group if ``group`` is empty. Groups that don't differ
        between the sides are left out.
        """
        distribution = distribution_at(str(Path(file).parent))
        groups = self._changed_groups(distribution)
        try:
            installed = installed_entry_points(Path(file))
        except OSError:  # it is gone
            return False
        declared = self._declared[root].get(distribution, {})
        return any(
            installed.get(name) != declared.get(name) for name in groups if group in {"", name}
        )

    def changed_scripts(self) -> frozenset[str]:
        """Return the names of the console scripts that the sides declare differently."""
        sides = [self._scripts(root) for root in self._declared]
        names = {name for scripts in sides for name in scripts}
        return frozenset(
            name for name in names if len({scripts.get(name) for scripts in sides}) > 1
        )

    def _scripts(self, root: str) -> dict[str, str]:
        declared = self._declared[root].values()
        return {name: code for points in declared for name, code in points.get(SCRIPTS, {}).items()}

    def starts_another(self, root: str, script: str) -> bool:
        """Return whether a console script runs other code than the side at ``root`` declares."""
        try:
            started = _STARTS.search(Path(script).read_text("utf-8", "replace"))
        except OSError:
            return False
        if started is None:  # not a console script: ``resembling`` compares its content
            return False
        return self._scripts(root).get(Path(script).name) != ":".join(started.groups())

    def changed_names(self) -> tuple[str, ...]:
        """Return the names of the files and of the scripts that differ between the sides.

        Empty if there are more than ``_MOST_NAMES``.
        """
        names = {path.rpartition("/")[2] for path in self._changed} - _COMMON_NAMES
        names |= self.changed_scripts()
        return tuple(sorted(names)) if len(names) <= _MOST_NAMES else ()

    def also_installed(self, importable: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Return the installed packages and modules that are named like one of the repository.

        ``importable`` has the folders that a Python imports from, each with the names in it. The
        returned paths are absolute. A package's path ends in a slash.
        """
        tops = self._tops()
        return tuple(
            f"{folder}/{name}"
            for folder, names in importable.items()
            for name in names
            if name in tops
        )

    def resembling(self, root: str, files: Mapping[str, str]) -> dict[str, Resemblance]:
        """Return the installed ``files`` that differ from those in the tree at ``root``.

        ``files`` has for each file its path relative to the folder that it is imported from, or an
        empty text if that folder isn't known.
        """
        tree = self._trees.get(root, {})
        unequal: dict[str, tuple[str, list[str]]] = {}
        for path, relative in files.items():
            alike = self._named(relative) if relative else self._changed_alike(path)
            blob = self._id(path) if alike or _is_compiled(path) else ""
            if blob and not any(tree.get(candidate) == blob for candidate in alike):
                unequal[path] = blob, alike
        known = self._known({blob for blob, alike in unequal.values() if alike})
        result = {}
        for path, (blob, alike) in unequal.items():
            seen = blob in known or any(self._has(candidate, blob) for candidate in alike)
            certain = seen and Path(path).stat().st_size >= _SMALLEST_BYTES
            if files[path]:
                hit = self._source_of_installed(files[path], alike, certain=certain)
            else:  # its folder says nothing: only contents of this change's files count
                hit = next(
                    (candidate for candidate in alike if certain and self._has(candidate, blob)), ""
                )
            if hit:
                result[path] = Resemblance(hit, certain)
        return result

    def _source_of_installed(self, relative: str, alike: Sequence[str], *, certain: bool) -> str:
        """Return the repository's file that an installed file matches, or "" without one.

        A match that isn't certain may be a public library that the repository vendors in another
        version. It counts only if this change changes the vendored copy.
        """
        if certain:
            return alike[0]
        if alike or not _is_compiled(relative):
            changed = (file for file in alike if file in self._changed)
            return next((file for file in changed if not NO_LIBRARY & {*Path(file).parts}), "")
        top = relative.partition("/")[0]
        return next(
            (source for source in self._changed_sources() if self._is_built_for(source, top)), ""
        )

    def _named(self, relative: str) -> list[str]:
        """Return the files that are imported as ``relative`` once their folder is on the path."""
        candidates = self._by_name.get(relative.rpartition("/")[2], ())
        return [
            candidate
            for candidate in candidates
            if candidate == relative
            or (candidate.endswith(f"/{relative}") and self._is_root(candidate, relative))
        ]

    def _is_root(self, path: str, relative: str) -> bool:
        """Return whether the folder before ``relative`` is one to import from, and not a package.

        A file that a package has vendored is imported under that package's name.
        """
        return not self._is_package(path.removesuffix(relative).rstrip("/"))

    def _changed_alike(self, path: str) -> list[str]:
        """Return the changed files with the name of ``path``.

        A file that a package vendors under the same relative path is left out.
        """
        _, _, inside = path.rpartition("-packages/")
        return [
            file
            for file in self._by_name.get(PurePosixPath(path).name, ())
            if file in self._changed
            and (not file.endswith(f"/{inside}") or self._is_root(file, inside))
        ]

    def _has(self, path: str, blob: str) -> bool:
        return any(tree.get(path) == blob for tree in self._trees.values())

    def _changed_sources(self) -> Iterator[str]:
        return (file for file in sorted(self._changed) if file.endswith(_COMPILED))

    def _is_built_for(self, source: str, top: str) -> bool:
        """Return whether a compiled source lies in the project that has the package ``top``."""
        folder = PurePosixPath(source).parent
        while folder.name and not any(str(folder / name) in self._paths for name in _PROJECTS):
            folder = folder.parent
        inside = "" if str(folder) == "." else f"{folder}/"
        return any(
            path.startswith(inside) and f"/{top}/" in f"/{path.removeprefix(inside)}"
            for path in self._paths
        )

    def _id(self, path: str) -> str:
        """Return git's id of a file's content. Empty if the file is gone or can't be read."""
        file = Path(path)
        with suppress(OSError):
            status = file.stat()
            key = path, status.st_mtime_ns, status.st_size
            if key not in self._ids:
                self._ids[key] = blob_id(file, self._digits)
            return self._ids[key]
        return ""

    def _tops(self) -> frozenset[str]:
        """Return the names under which something of the repository can be imported.

        A package's name ends in a slash.
        """
        tops: set[str] = set()
        folders: set[str] = set()
        for path in self._paths:
            folder, _, name = path.rpartition("/")
            folders.add(folder)
            if name.endswith(".py") and name not in _COMMON_NAMES and not self._is_package(folder):
                tops.add(name)
        for folder in folders:
            for place in (folder, *map(str, PurePosixPath(folder).parents)):
                above, _, last = place.rpartition("/")
                if last not in {"", "."} and not self._is_package(above):
                    tops.add(f"{last}/")
        return frozenset(tops)

    def _is_package(self, folder: str) -> bool:
        return (f"{folder}/__init__.py" if folder else "__init__.py") in self._paths


def _is_compiled(path: str) -> bool:
    return ".so" in PurePosixPath(path).suffixes


def distributions_of(tree: Path) -> tuple[str, ...]:
    """Return the normalised names that ``tree``'s project files declare; several in a monorepo."""
    names = (_names(folder) for folder, _ in project_folders(str(tree)))
    return tuple(sorted({name for in_folder in names for name in in_folder}))


def entry_points_of(folder: Path) -> dict[str, EntryPoints]:
    """Return the entry points that the project in ``folder`` declares, by its normalised name.

    The name is empty if no project file states it.
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
    """Return the entry points in an ``entry_points.txt``. OSError if it can't be read."""
    return _points_of_ini(file.read_text("utf-8", "replace"))


def distribution_at(metadata: str) -> str:
    """Return the normalised name of the distribution whose folder of metadata this is."""
    name = Path(metadata).name
    for suffix in (".dist-info", ".egg-info"):
        name = name.removesuffix(suffix)
    return normalised(name.partition("-")[0])


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
    """Return the entry points that ``text`` has as literals.

    If these have no console scripts, return all text that has the form of one.
    """
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
    """Return the groups that aren't empty, without blanks in them, which mean nothing."""
    cleaned = {
        str(group): {str(name).strip(): _value(value) for name, value in names}
        for group, names in groups
    }
    return {group: names for group, names in cleaned.items() if names}


def _value(value: Any) -> str:
    if isinstance(value, dict):  # Poetry's form of an entry point with extras
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
