"""Installed files that are copies of the repository's, by their names and by their content.

A project's packages lie anywhere in its repository (``third_party/``, ``dist/``, ten folders
deep), and an installed copy of them says nothing of where it came from. So an installed file is
compared with git's: with the file that each side's tree has under the same name, and with all
contents that any revision has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfci.measure.checkout.differing import blob_id
from perfci.measure.provenance.declared import (
    PROJECT_FILES,
    SCRIPTS,
    EntryPoints,
    distribution_at,
    entry_points_of,
    installed_entry_points,
)
from perfci.worker.own_packages import NO_LIBRARY

_SMALLEST = 24
"""Bytes. What is shorter (an empty ``__init__.py``) has the same content in any repository."""
_COMMON = frozenset({"__init__.py", "__main__.py", "conftest.py", "setup.py"})
"""Names that say nothing of a file."""
_MOST_NAMES = 2000
"""Of a change of more files, only their packages' names are looked for among what is installed."""
_PROJECTS = (*PROJECT_FILES, "CMakeLists.txt", "meson.build")
_COMPILED = (
    *(".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".cu", ".cuh", ".pyx", ".pxd", ".rs", ".f90"),
)


@dataclass(frozen=True, slots=True)
class Resemblance:
    """An installed file that isn't the side's own, and the repository's file that it stands for.

    It is ``certain`` where a revision of the repository has its content.
    """

    path: str
    certain: bool


_STARTS = re.compile(r"^from ([\w.]+) import ([\w.]+)", re.MULTILINE)
"""The line of an installed console script that imports what it runs."""


class Counterparts:
    """The files of all sides' trees, by root, each with git's id of its content."""

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
        """Return what the projects in ``root`` declare whose files differ between the sides."""
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

        Of one ``group``, or where that is empty of all; groups that don't differ between the
        sides are left out.
        """
        distribution = distribution_at(str(Path(file).parent))
        groups = self._changed_groups(distribution)
        try:
            installed = installed_entry_points(Path(file))
        except OSError:  # it is gone
            return False
        mine = self._declared[root].get(distribution, {})
        return any(installed.get(name) != mine.get(name) for name in groups if group in {"", name})

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
        """Return whether a console script runs what the side at ``root`` doesn't declare."""
        try:
            started = _STARTS.search(Path(script).read_text("utf-8", "replace"))
        except OSError:
            return False
        if started is None:  # no console script: its content is compared
            return False
        return self._scripts(root).get(Path(script).name) != ":".join(started.groups())

    def changed_names(self) -> tuple[str, ...]:
        """Return the names of the files and of the scripts that differ between the sides.

        There are none of a huge change.
        """
        names = {path.rpartition("/")[2] for path in self._changed} - _COMMON
        names |= self.changed_scripts()
        return tuple(sorted(names)) if len(names) <= _MOST_NAMES else ()

    def also_installed(self, importable: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Return what has the name of a package or a module of the repository.

        ``importable`` are the folders that a Python imports from, with the names of what lies
        there. The paths are absolute; a package's ends in a slash.
        """
        tops = self._tops()
        return tuple(
            f"{folder}/{name}"
            for folder, names in importable.items()
            for name in names
            if name in tops
        )

    def resembling(self, root: str, files: Mapping[str, str]) -> dict[str, Resemblance]:
        """Return which installed ``files`` aren't what the tree at ``root`` has in their place.

        ``files`` has each file's path relative to the folder that it is imported from; empty where
        that isn't known.
        """
        mine = self._trees.get(root, {})
        unequal: dict[str, tuple[str, list[str]]] = {}
        for path, relative in files.items():
            alike = self._named(relative) if relative else self._changed_alike(path)
            blob = self._id(path) if alike or _is_compiled(path) else ""
            if blob and not any(mine.get(candidate) == blob for candidate in alike):
                unequal[path] = blob, alike
        known = self._known({blob for blob, alike in unequal.values() if alike})
        result = {}
        for path, (blob, alike) in unequal.items():
            seen = blob in known or any(self._has(candidate, blob) for candidate in alike)
            certain = seen and Path(path).stat().st_size >= _SMALLEST
            if files[path]:
                hit = self._of_package(files[path], alike, certain=certain)
            else:  # of a place that says nothing: by the content of this change alone
                hit = next(
                    (candidate for candidate in alike if certain and self._has(candidate, blob)), ""
                )
            if hit:
                result[path] = Resemblance(hit, certain)
        return result

    def _of_package(self, relative: str, alike: Sequence[str], *, certain: bool) -> str:
        """Return the repository's file that an installed one stands for; empty where it needn't.

        A public library has another content than the repository's copy of it. That is wrong where
        this change is one of that copy.
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
        """Return whether nothing but the folder that ``path`` is imported from stands before it.

        What a package has vendored is imported as its own.
        """
        return not self._is_package(path.removesuffix(relative).rstrip("/"))

    def _changed_alike(self, path: str) -> list[str]:
        """Return the changed files of that name which aren't vendored under the same one."""
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
        """Return git's id of a file's content; empty where it is gone, or can't be read."""
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
            if name.endswith(".py") and name not in _COMMON and not self._is_package(folder):
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
