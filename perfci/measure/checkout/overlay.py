"""One commit's benchmark files laid over another commit's tree, in git's objects alone.

Both sides then have the same benchmark files, each in its own tree: what a benchmark reaches
through ``__file__`` is its own side's. Nothing is written to a working tree or to the user's index.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from perfci.errors import UsageError
from perfci.measure.checkout.disk import explaining
from perfci.measure.checkout.git import attempt, failure, git, readable
from perfci.measure.checkout.submodules import MODE
from perfci.worker.own_packages import NO_LIBRARY

_Entries: TypeAlias = Mapping[str, tuple[str, str]]
"""Modes and ids by path."""
_LINK = "120000"
_MOST_LINKS = 40
"""As many as Linux follows before it gives up."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """A git ``tree``: a commit's own, with the benchmark files of another commit.

    The commit lacks those that were ``added``, and has those that were ``changed`` with another
    content. Of ``converted`` both commits have other ``.gitattributes``, by which git may write
    another content when it checks them out. All are paths relative to the tree's root.
    """

    tree: str
    added: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    converted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BenchmarkSelection:
    """The files of a tree that belong to its benchmarks.

    ``links`` are benchmark files that are symbolic links, each with the file outside of the
    benchmarks that it leads to.
    """

    is_benchmark: Callable[[str], bool]
    links: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BenchmarkFiles:
    """The benchmarks of a tree: the ``folder``, or only the files of ``pattern`` in it.

    ``python_path`` are the folders that libraries are imported from. ``excluded`` are files that
    each side has of its own, such as saved models. All paths are relative to the tree's root.
    """

    folder: str
    pattern: str
    python_path: tuple[str, ...] = ()
    excluded: frozenset[str] = frozenset()

    def selection(
        self, names: Collection[str], target_of: Callable[[str], str | None]
    ) -> BenchmarkSelection:
        """Return which files are the benchmarks'.

        ``names`` are the files of the tree whose benchmarks run; ``target_of`` returns where a
        symbolic link of that tree leads, and None for any other path.
        """
        folder = PurePosixPath(self.folder)
        real = _resolved(folder, target_of)
        whole = self._is_whole(real, names)

        def is_benchmark(name: str) -> bool:
            path = PurePosixPath(name)
            inside = path.is_relative_to(folder) or path.is_relative_to(real)
            return inside and (whole or path.match(self.pattern)) and name not in self.excluded

        links = {
            name: str(_resolved(PurePosixPath(name), target_of))
            for name in names
            if is_benchmark(name)
            and PurePosixPath(name).match(self.pattern)
            and target_of(name) is not None
        }
        outside = {name: target for name, target in links.items() if not is_benchmark(target)}
        behind = {place for place in outside.values() if PurePosixPath(place).match(self.pattern)}
        parts = map(str, (folder, *folder.parents))
        through = {name for name in parts if target_of(name) is not None}
        return BenchmarkSelection(
            lambda name: is_benchmark(name) or name in behind or name in through,
            {name: target for name, target in outside.items() if target not in behind},
        )

    def _is_whole(self, folder: PurePosixPath, names: Collection[str]) -> bool:
        """Return whether all of the folder is the benchmarks', helpers and data included.

        Where libraries are imported from it (``benchmarks = "."``), or where it is in a package of
        theirs (``benchmarks = "mylib"``), what lies beside the benchmark files is the library.
        """
        libraries = [PurePosixPath(os.path.normpath(entry)) for entry in self.python_path]
        return folder.parts != () and not any(
            library.is_relative_to(folder) or _is_in_package(folder, library, names)
            for library in libraries
        )


def _is_in_package(folder: PurePosixPath, library: PurePosixPath, names: Collection[str]) -> bool:
    if not folder.is_relative_to(library):
        return False
    parts = folder.relative_to(library).parts
    return not NO_LIBRARY.intersection(parts) and str(library / parts[0] / "__init__.py") in names


def _resolved(path: PurePosixPath, target_of: Callable[[str], str | None]) -> PurePosixPath:
    """Return where ``path`` leads inside the tree; itself where it leads out of it."""
    real = path
    for _ in range(_MOST_LINKS):
        parts = (*reversed(real.parents), real)
        link = next(
            ((part, to) for part in parts if (to := target_of(str(part))) is not None), None
        )
        if link is None:
            return real
        place, target = link
        rest = real.relative_to(place)
        real = PurePosixPath(os.path.normpath(place.parent / target / rest))
        if real.is_absolute() or ".." in real.parts:
            return path
    return path


def lay_over(repository: Path, tree: str, source: str, benchmarks: BenchmarkFiles) -> Overlay:
    """Return ``tree`` with the benchmark files of the git tree ``source`` in place of its own.

    UsageError for a benchmark that is a link to a file of which each side has another content: each
    would run its own. OutsideError where git fails.
    """
    if tree == source:
        return Overlay(tree)
    theirs = _entries(repository, source)
    targets: dict[str, str] = {}

    def target_of(name: str) -> str | None:
        mode, blob = theirs.get(name, ("", ""))
        if mode != _LINK:
            return None
        if name not in targets:
            targets[name] = git(repository, "cat-file", "blob", blob)
        return targets[name]

    selection = benchmarks.selection(theirs, target_of)
    is_benchmark = selection.is_benchmark
    laid = {name: entry for name, entry in theirs.items() if is_benchmark(name)}
    mine = _entries(repository, tree)
    replaced = {name: entry for name, entry in mine.items() if is_benchmark(name)}
    for name, target in selection.links.items():
        if mine.get(target) != theirs.get(target):
            raise UsageError(
                "linked-benchmark",
                f"{readable(name)} is a link to {readable(target)}, which differs between the "
                "sides: each would run a benchmark of its own",
                f"Give it a name that matches `pattern`, {benchmarks.pattern}, or make "
                f"{readable(name)} a file.",
            )
    declared = _declarations(mine, theirs, laid)
    return Overlay(
        tree if laid == replaced else _written(repository, tree, replaced, {**laid, **declared}),
        frozenset(laid.keys() - mine.keys()),
        frozenset(name for name in laid.keys() & mine.keys() if laid[name] != mine[name]),
        _converted(mine, theirs, laid),
    )


def _converted(mine: _Entries, theirs: _Entries, laid: _Entries) -> frozenset[str]:
    """Return the files that lie below ``.gitattributes`` which differ between the trees."""
    folders = {
        PurePosixPath(name).parent
        for name in {**mine, **theirs}
        if PurePosixPath(name).name == ".gitattributes"
        and name not in laid
        and mine.get(name) != theirs.get(name)
    }
    return frozenset(name for name in laid if folders.intersection(PurePosixPath(name).parents))


def _declarations(mine: _Entries, theirs: _Entries, laid: _Entries) -> _Entries:
    """Return ``.gitmodules`` of the other tree where it declares all submodules that are there.

    Submodules among the benchmarks need it. Nothing where there are none, and where that file
    would leave out a submodule outside of the benchmarks.
    """

    def submodules(entries: _Entries) -> frozenset[str]:
        return frozenset(name for name, (mode, _) in entries.items() if mode == MODE)

    if not submodules(laid) or not submodules(mine) - laid.keys() <= submodules(theirs):
        return {}
    return {name: entry for name, entry in theirs.items() if name == ".gitmodules"}


def _entries(repository: Path, tree: str) -> dict[str, tuple[str, str]]:
    """Return the mode and the id of each file, link and submodule of a git tree, by its path."""
    listed = git(repository, "ls-tree", "-r", "-z", "--full-tree", tree)
    entries = {}
    for entry in filter(None, listed.split("\0")):
        description, _, path = entry.partition("\t")
        mode, _, blob = description.split()
        entries[path] = mode, blob
    return entries


def _written(
    repository: Path,
    tree: str,
    removed: Collection[str],
    added: _Entries,
) -> str:
    """Return the id of ``tree`` without the files ``removed`` and with those ``added``."""
    lines = [f"0 {'0' * len(tree)}\t{name}\0" for name in removed]
    lines += [f"{mode} {blob}\t{name}\0" for name, (mode, blob) in added.items()]
    with (
        explaining("making an index"),
        tempfile.TemporaryDirectory(prefix="perfci-") as folder,
        Path(folder, "entries").open("w+", encoding="utf-8", errors="surrogateescape") as entries,
    ):
        environment = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        git(repository, "read-tree", tree, environment=environment)
        entries.write("".join(lines))
        entries.seek(0)
        arguments = ("update-index", "-z", "--index-info")
        outcome = attempt(repository, *arguments, environment=environment, given=entries)
        if outcome.status != 0:
            raise failure(outcome, *arguments)
        return git(repository, "write-tree", environment=environment)
