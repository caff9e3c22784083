"""Git's trees: a tree with another tree's benchmark files, and how two trees differ.

Both sides get the same benchmark files, each side in its own tree. So a benchmark reaches its own
side's files through ``__file__``. Nothing is written to a working tree or to the user's index.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import tempfile
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from glob import escape
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, TypeAlias

from perfci.errors import UsageError
from perfci.measure.checkout.disk import explaining
from perfci.measure.checkout.git import Repository, attempt, failure, files_of, git, readable
from perfci.measure.checkout.worktrees import MODE, checked_out_in, submodules_of
from perfci.worker.own_packages import NO_LIBRARY

_Entries: TypeAlias = Mapping[str, tuple[str, str]]
"""By path: git's mode, and the id of the content."""
_LINK = "120000"
"""git's mode of a symbolic link."""
_NOTHING = ("", "")
MOST_FOLLOWED = 5_000
"""If more files differ, their use isn't tracked: a change that large is measured in any case."""
_UNWATCHABLE = frozenset({"120000", MODE})
"""git's modes of what no watch can see: a link (followed without an open) and a submodule."""
_COMPARING = ("diff-tree", "-r", "--raw", "--no-renames", "-z")
_BYTECODE = "__pycache__"
KINDS = ("sources", "requirements", "locks", "packaging", "submodules", "ci")
"""The kinds of changed files, in the order in which they are reported."""
_SOURCES = frozenset(
    {
        *(".py", ".pyx", ".pxd", ".pxi", ".pth", ".so", ".pyd", ".rs", ".go", ".zig"),
        *(".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".tpp"),
        *(".cu", ".cuh", ".ptx", ".hip", ".cl", ".metal", ".mm", ".s", ".asm", ".ispc"),
        *(".f", ".for", ".f90", ".f95", ".f03", ".f08", ".proto"),
    }
)
_NOT_MEASURED = frozenset({"test", "tests", "doc", "docs"})
"""Folders whose files no benchmark of the library runs."""
_NOT_IMPORTED = ("test_*.py", "*_test.py", "conftest.py", "noxfile.py", "tasks.py")
"""Python files that no benchmark imports."""
_LOCKS = ("*.lock", "conda-lock.yml", "pylock.toml", "pylock.*.toml")
_REQUIREMENTS = (
    *("*requirements*.txt", "*requirements*.in", "constraints*.txt", "Pipfile", "pixi.toml"),
    *("environment.yml", "environment.yaml"),
)
_PACKAGING = (
    *("setup.py", "setup.cfg", "entry_points.txt", "Cargo.toml"),
    *("CMakeLists.txt", "CMakePresets.json", "*.cmake"),
    *("meson.build", "meson_options.txt", "meson.options"),
)
_CI_FILES = (
    *("Dockerfile*", "*.dockerfile", ".gitlab-ci.yml", "Jenkinsfile", "azure-pipelines.yml"),
    *(".python-version", ".tool-versions", "tox.ini"),
)
_CI_FOLDERS = (
    *(".github/workflows/", ".github/actions/", ".gitlab/", ".forgejo/", ".gitea/"),
    *(".circleci/", ".buildkite/", ".devcontainer/"),
)
# What in a pyproject.toml decides which code runs: keys of `project` (the first two), tables of
# `tool`, and keys of `tool.poetry`.
_PROJECT_KEYS = ("dependencies", "optional-dependencies", "requires-python", "dynamic")
_ENTRY_POINTS = ("scripts", "gui-scripts", "entry-points")
_BUILDERS = ("setuptools", "hatch", "flit", "maturin", "scikit-build", "meson-python", "pdm", "uv")
_POETRY_KEYS = ("dependencies", "group", "extras", "build", "packages", "scripts", "plugins")
_SHA1_DIGITS = 40


@dataclass(frozen=True, slots=True)
class Overlay:
    """A commit's git ``tree`` with the benchmark files of another commit.

    The commit itself lacks the files ``added``, and has the files ``changed`` with other content.
    Both are paths relative to the tree's root.
    """

    tree: str
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
    if tree == source:
        return Overlay(tree)
    source_files = files_of(repository.git_dir, source)
    tree_files = files_of(repository.git_dir, tree)
    folder = PurePosixPath(benchmarks.folder)
    for place in map(str, (folder, *folder.parents)):
        if _LINK in {source_files.get(place, _NOTHING)[0], tree_files.get(place, _NOTHING)[0]}:
            raise UsageError(
                "linked-benchmark",
                f"the benchmarks' folder is behind the link {readable(place)}",
                "Set `benchmarks` to the folder that it leads to.",
            )
    is_benchmark = benchmarks.selection(source_files)
    laid = {name: entry for name, entry in source_files.items() if is_benchmark(name)}
    replaced = {name: entry for name, entry in tree_files.items() if is_benchmark(name)}
    declared = _declarations(tree_files, source_files, laid)
    made = tree
    if laid != replaced:
        made = _written(repository.root, tree, replaced, {**laid, **declared})
    for name, (mode, _) in laid.items():
        if mode == _LINK and PurePosixPath(name).match(benchmarks.pattern):
            _require_equal(repository, name, (made, source))
    return Overlay(
        made,
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


def _declarations(tree_files: _Entries, source_files: _Entries, laid: _Entries) -> _Entries:
    """Return the source's ``.gitmodules``, which submodules among the benchmarks need.

    Return nothing if there are no such submodules, or if the file would leave out a submodule that
    the tree has outside of the benchmarks.
    """

    def submodules(entries: _Entries) -> frozenset[str]:
        return frozenset(name for name, (mode, _) in entries.items() if mode == MODE)

    if not submodules(laid) or not submodules(tree_files) - laid.keys() <= submodules(source_files):
        return {}
    return {name: entry for name, entry in source_files.items() if name == ".gitmodules"}


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


def differing_files(path: Path, other: Path, trees: tuple[str, str]) -> frozenset[str] | None:
    """Return the files that differ between two worktrees or that only one of them has.

    The paths are relative to either root. ``trees`` are git's ids of what was checked out. ``.git``
    is among the paths, because it names the commit. Submodules that both have checked out are
    compared file by file. None if a link, another submodule or a ``.gitattributes`` (by which git
    converts files on check-out) differs, or if more than ``MOST_FOLLOWED`` files do. Bytecode that
    Python makes of a source counts as its source. OutsideError if git fails.
    """
    changed = _differing(path, other, trees)
    return frozenset(changed) if changed is not None and len(changed) <= MOST_FOLLOWED else None


def _differing(base: Path, head: Path, trees: tuple[str, str]) -> set[str] | None:
    submodules = {*checked_out_in(base)} & {*checked_out_in(head)}
    changed = _changed(base, trees, submodules)
    if changed is None:
        return None
    for name in (_not_as_committed(base) | _not_as_committed(head)) - submodules:
        pair = (base / name, head / name)
        if any(path.is_symlink() or path.is_dir() for path in pair):
            return None  # a link, or a folder: another repository inside of this one
        if not all(path.is_file() for path in pair) or not filecmp.cmp(*pair, shallow=False):
            changed.add(name)
    for name in submodules:
        inner_base, inner_head = base / name, head / name
        commits = (git(inner_base, "rev-parse", "HEAD"), git(inner_head, "rev-parse", "HEAD"))
        inner = _differing(inner_base, inner_head, commits)
        if inner is None:
            return None
        changed |= {f"{name}/{path}" for path in inner}
    return {*changed, ".git"}


def _changed(root: Path, trees: tuple[str, str], submodules: Collection[str]) -> set[str] | None:
    """Return the files that differ between two git trees, or None if such a file can't be watched.

    The ``submodules`` are left out. None, too, if this repository lacks one of the trees.
    """
    outcome = attempt(root, *_COMPARING, *trees)
    if outcome.status != 0:
        return None
    changed = set()
    for name, modes in _raw_changes(outcome.output):
        if modes == {MODE} and name in submodules:
            continue
        if modes & _UNWATCHABLE or Path(name).name == ".gitattributes":
            return None
        changed.add(name)
    return changed


def _raw_changes(output: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the name of each file that git lists as changed, and its modes on both sides."""
    fields = iter(output.split("\0"))
    for entry in filter(None, fields):
        yield next(fields), {*entry.removeprefix(":").split()[:2]}


def _not_as_committed(root: Path) -> set[str]:
    """Return the files in ``root`` that were changed, removed or added since the check-out."""
    listing = git(root, "ls-files", "--modified", "--deleted", "--others", "-z")
    names = filter(None, listing.split("\0"))
    return {name for name in names if _BYTECODE not in Path(name).parts}


def bytecode_of(source: Path) -> Iterator[Path]:
    """Yield the files of bytecode that Python has made of ``source``, and reads in its place."""
    if source.suffix == ".py":
        yield from (source.parent / _BYTECODE).glob(f"{escape(source.stem)}.*.pyc")


def relevant_changes(base: Path, head: Path, trees: tuple[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the changed files by kind: sources, requirements, locks, packaging, submodules, ci.

    ``base`` and ``head`` are worktrees of the git ``trees``. Prose, data and tests are left out.
    Raises OutsideError if git fails.
    """
    kinds: dict[str, list[str]] = {}
    for name, modes in _raw_changes(git(head, *_COMPARING, *trees)):
        kind = "submodules" if MODE in modes else kind_of(name)
        if name == "pyproject.toml" or name.endswith("/pyproject.toml"):
            kind = "packaging" if _runs_otherwise(base / name, head / name) else ""
        if kind:
            kinds.setdefault(kind, []).append(name)
    return {kind: tuple(kinds[kind]) for kind in KINDS if kind in kinds}


def kind_of(name: str) -> str:
    """Return the kind of the changed file ``name``, or "" if no benchmark need exercise it."""
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
        ("sources", path.suffix.lower() in _SOURCES),
    )
    return next((kind for kind, holds in kinds if holds), "")


def _runs_otherwise(base: Path, head: Path) -> bool:
    """Return whether dependencies, entry points or the build differ, or can't be read."""
    try:
        before, after = (
            tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            for path in (base, head)
        )
    except (OSError, ValueError):
        return True
    return _what_runs(before) != _what_runs(after)


def _what_runs(pyproject: Mapping[str, Any]) -> list[Any]:
    """Return the parts of a pyproject.toml that decide which code is installed and run."""

    def parts(table: Any, names: tuple[str, ...]) -> list[Any]:
        return [table.get(name) if isinstance(table, dict) else None for name in names]

    tools = pyproject.get("tool")
    poetry = parts(tools, ("poetry",))[0]
    return [
        *parts(pyproject, ("build-system", "dependency-groups")),
        *parts(pyproject.get("project"), (*_PROJECT_KEYS, *_ENTRY_POINTS)),
        *parts(tools, _BUILDERS),
        *parts(poetry, _POETRY_KEYS),
    ]


def blobs_of(repository: Repository, tree: str) -> Mapping[str, str]:
    """Return the path of each file in git's ``tree``, with the id of its content.

    A submodule's files are among them, as in the commit that ``tree`` has for it, if the user's
    clone has that commit. OutsideError if git fails.
    """
    files = _blobs(repository.git_dir, tree)
    for submodule in submodules_of(repository, tree):
        if submodule.git_dir and submodule.available:
            below = _blobs(submodule.git_dir, submodule.commit)
            files |= {f"{readable(submodule.path)}/{name}": blob for name, blob in below.items()}
    return MappingProxyType(files)


def _blobs(git_dir: Path, tree: str) -> dict[str, str]:
    entries = files_of(git_dir, tree).items()
    return {readable(path): blob for path, (mode, blob) in entries if mode != MODE}


def blob_id(file: Path, digits: int = _SHA1_DIGITS) -> str:
    """Return the id that git would give the content of ``file``. OSError if it can't be read.

    ``digits`` is the length of the repository's ids: 40 for SHA-1, 64 for SHA-256.
    """
    content = file.read_bytes()
    header = b"blob %d\0" % len(content)
    algorithm = "sha1" if digits == _SHA1_DIGITS else "sha256"
    return hashlib.new(algorithm, header + content, usedforsecurity=False).hexdigest()


def known_blobs(repository: Path, ids: Iterable[str]) -> frozenset[str]:
    """Return those of ``ids`` that any revision of the repository has. Asks no server."""
    wanted = sorted(set(ids))
    if not wanted:
        return frozenset()
    with tempfile.TemporaryFile("w+") as questions:
        questions.write("\n".join(wanted) + "\n")
        questions.seek(0)
        answer = attempt(
            repository,
            *("cat-file", "--batch-check"),
            environment={"GIT_NO_LAZY_FETCH": "1"},
            given=questions,
        )
    return frozenset(line.split()[0] for line in answer.output.splitlines() if " blob " in line)
