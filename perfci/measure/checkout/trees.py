"""Git's trees: a tree with another tree's benchmark files, and how two trees differ.

Both sides get the same benchmark files, each side in its own tree. So a benchmark reaches its own
side's files through ``__file__``. Nothing is written to a working tree or to the user's index.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from perfci.errors import UsageError
from perfci.measure.checkout.git import Repository, attempt, failure, files_of, git, readable
from perfci.worker.own_packages import NO_LIBRARY

_Entries: TypeAlias = Mapping[str, tuple[str, str]]
"""By path: git's mode, and the id of the content."""
_FILE_MODES = frozenset({"000000", "100644", "100755"})
"""git's modes of a plain file, and of one that a tree lacks."""
_LINK = "120000"
"""git's mode of a symbolic link."""
_NOTHING = ("", "")
ChangedLines: TypeAlias = tuple[frozenset[int], frozenset[int]]
"""The numbers of the lines of a file that differ, from 1: base's and head's."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NOT_MEASURED = frozenset({"test", "tests", "doc", "docs"})
"""Folders whose files no benchmark of the library runs."""
_TESTS = ("test_*.py", "*_test.py")
_NOT_IMPORTED = (*_TESTS, "conftest.py", "noxfile.py", "tasks.py", "setup.py")
"""Python files that no benchmark imports."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """A commit's git ``tree`` with the benchmark files of another commit.

    ``files`` are all files that belong to the benchmarks. The commit itself lacks the files
    ``added``, and has the files ``changed`` with other content. All are paths relative to the
    tree's root.
    """

    tree: str
    files: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BenchmarkFiles:
    """The benchmarks of a tree: the ``folder``, or only the files of ``pattern`` in it.

    ``python_path`` are the folders that libraries are imported from. All paths are relative to the
    tree's root.
    """

    folder: str
    pattern: str
    python_path: tuple[str, ...] = ()

    def selection(self, names: Collection[str]) -> Callable[[str], bool]:
        """Return a predicate that is true for paths of benchmark files.

        ``names`` are the files of the tree whose benchmarks run.
        """
        folder = PurePosixPath(self.folder)
        whole = self._is_whole(folder, names)

        def is_benchmark(name: str) -> bool:
            path = PurePosixPath(name)
            return path.is_relative_to(folder) and (whole or path.match(self.pattern))

        return is_benchmark

    def _is_whole(self, folder: PurePosixPath, names: Collection[str]) -> bool:
        """Return whether all of the folder belongs to the benchmarks, helpers and data included.

        It doesn't if libraries are imported from the folder (``benchmarks = "."``), or if the
        folder is in a library's package (``benchmarks = "mylib"``): the library's files then lie
        next to the benchmark files.
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


def lay_over(repository: Repository, tree: str, source: str, benchmarks: BenchmarkFiles) -> Overlay:
    """Return ``tree`` with the benchmark files of the git tree ``source`` in place of its own.

    UsageError if a benchmark is a link to a file that differs between the sides, so that each side
    would run its own version, or if their folder is a link. OutsideError if git fails.
    """
    source_files = files_of(repository.git_dir, source)
    is_benchmark = benchmarks.selection(source_files)
    laid = {name: entry for name, entry in source_files.items() if is_benchmark(name)}
    if tree == source:
        return Overlay(tree, frozenset(laid))
    tree_files = files_of(repository.git_dir, tree)
    folder = PurePosixPath(benchmarks.folder)
    for place in map(str, (folder, *folder.parents)):
        if _LINK in {source_files.get(place, _NOTHING)[0], tree_files.get(place, _NOTHING)[0]}:
            raise UsageError(
                "linked-benchmark",
                f"the benchmarks' folder is behind the link {readable(place)}",
                "Set `benchmarks` to the folder that it leads to.",
            )
    replaced = {name: entry for name, entry in tree_files.items() if is_benchmark(name)}
    made = tree
    if laid != replaced:
        made = _written(repository.root, tree, replaced, laid)
    for name, (mode, _) in laid.items():
        if mode == _LINK and PurePosixPath(name).match(benchmarks.pattern):
            _require_equal(repository, name, (made, source))
    return Overlay(
        made,
        frozenset(laid),
        frozenset(laid.keys() - tree_files.keys()),
        frozenset(
            name for name in laid.keys() & tree_files.keys() if laid[name] != tree_files[name]
        ),
    )


def _require_equal(repository: Repository, link: str, trees: tuple[str, str]) -> None:
    """Raise UsageError if ``link`` leads to files that differ between the ``trees``."""
    found = set()
    for tree in trees:
        with tempfile.TemporaryFile("w+", errors="surrogateescape") as question:
            question.write(f"{tree}:{link}\n")
            question.seek(0)
            words = ("cat-file", "--batch-check", "--follow-symlinks")
            answer = attempt(repository.root, *words, given=question)
        found.add(answer.output.partition(" ")[0])  # an id, or what is wrong with the link
    if len(found) > 1:
        raise UsageError(
            "linked-benchmark",
            f"{readable(link)} is a link to a file that differs between the sides: each would run "
            "a benchmark of its own",
            f"Make {readable(link)} a file.",
        )


def _written(
    repository: Path,
    tree: str,
    removed: Collection[str],
    added: _Entries,
) -> str:
    """Return the id of ``tree`` without the files ``removed`` and with those ``added``."""
    lines = [f"0 {'0' * len(tree)}\t{name}\0" for name in removed]  # mode 0 removes the path
    lines += [f"{mode} {blob}\t{name}\0" for name, (mode, blob) in added.items()]
    with (
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


@dataclass(frozen=True, slots=True)
class Differences:
    """The files that differ between the sides' trees.

    ``seen`` are all of them, if a watch sees every use of them. It is None if one may be used
    unseen (a file that isn't Python, or anything of sides that are built or have their own Python),
    and for a commit that is compared with itself. ``harmless`` are all of them if they are prose or
    tests, else nothing. A ``conftest.py`` isn't harmless: pytest loads it for benchmarks that it
    collects. ``sources`` are the Python files that a benchmark should exercise. ``python_alone``:
    nothing differs but Python files, whose use a watch sees, and prose. ``lines`` are those that
    differ in Python files.
    """

    seen: frozenset[str] | None = None
    harmless: frozenset[str] = frozenset()
    sources: tuple[str, ...] = ()
    python_alone: bool = False
    lines: Mapping[str, ChangedLines] = field(default_factory=dict)

    def lines_of(self, side: str) -> dict[str, frozenset[int]]:
        """Return the lines by file in which ``side``'s sources differ from the other side's."""
        which = 0 if side == "base" else 1
        return {name: self.lines[name][which] for name in self.sources if name in self.lines}


def differences(
    root: Path, trees: tuple[str, str], *, may_be_seen: bool, may_be_harmless: bool
) -> Differences:
    """Return how two trees differ, by git in the worktree ``root``. OutsideError if git fails.

    ``may_be_seen``: a watch sees the use of Python files. ``may_be_harmless``: prose and tests may
    be left out.
    """
    fields = git(root, "diff-tree", "-r", "--raw", "--no-renames", "-z", *trees).split("\0")[:-1]
    modes = {mode for entry in fields[::2] for mode in entry.removeprefix(":").split()[:2]}
    names = fields[1::2]
    plain = modes <= _FILE_MODES
    python = plain and all(name.endswith(".py") or cannot_be_code(name) for name in names)
    harmless = plain and all(cannot_be_code(name) or _is_test(name) for name in names)
    return Differences(
        seen=frozenset(names) if python and may_be_seen else None,
        harmless=frozenset(names) if harmless and may_be_harmless else frozenset(),
        sources=tuple(filter(is_source, names)),
        python_alone=python,
        lines=changed_lines(root, trees),
    )


def changed_lines(root: Path, trees: tuple[str, str]) -> Mapping[str, ChangedLines]:
    """Return by Python file the lines of both sides in which two of git's trees differ.

    A place where one side has no lines counts as the lines around it.
    """
    options = ("-r", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-prefix")
    text = git(root, "-c", "core.quotePath=false", "diff-tree", *options, *trees, "--", "*.py")
    lines: dict[str, tuple[set[int], set[int]]] = {}
    name, inside = "", False  # inside a file's hunks, where a removed line may begin like a name
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            inside = False
        elif hunk := _HUNK.match(line):
            inside = True
            sides = lines.setdefault(name, (set(), set()))
            for side, start, count in zip(
                sides, hunk.groups()[::2], hunk.groups()[1::2], strict=True
            ):
                # git gives the line before an empty place: that one and the next
                length = (1 if count is None else int(count)) or 2
                side |= {*range(int(start), int(start) + length)}
        elif not inside and line.startswith(("--- ", "+++ ")) and line[4:] != "/dev/null":
            name = line[4:].rstrip("\t")
    return {name: (frozenset(sides[0]), frozenset(sides[1])) for name, sides in lines.items()}


def _is_test(name: str) -> bool:
    path = PurePosixPath(name)
    is_named = any(fnmatch(path.name, pattern) for pattern in _TESTS)
    is_test = is_named or not {"test", "tests"}.isdisjoint(path.parts[:-1])
    return is_test and path.suffix == ".py" and path.name != "conftest.py"


def cannot_be_code(name: str) -> bool:
    """Return whether no benchmark can run the file ``name``: prose, a licence, or the forge's."""
    path = PurePosixPath(name)
    return (
        path.suffix in {".md", ".rst"}
        or path.name.startswith("LICENSE")
        or path.parts[0] in {"docs", ".github"}
    )


def is_source(name: str) -> bool:
    """Return whether the file ``name`` is Python that benchmarks import, as far as names tell."""
    path = PurePosixPath(name)
    is_other = any(fnmatch(path.name, pattern) for pattern in _NOT_IMPORTED)
    return path.suffix == ".py" and not is_other and _NOT_MEASURED.isdisjoint(path.parts[:-1])
