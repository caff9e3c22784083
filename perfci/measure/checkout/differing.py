"""Differences between two trees: files, changes that a benchmark should exercise, contents."""

from __future__ import annotations

import filecmp
import hashlib
import tempfile
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from glob import escape
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from perfci.measure.checkout.git import Repository, attempt, git, readable
from perfci.measure.checkout.submodules import MODE, checked_out_in, submodules_of

MOST = 5_000
"""Of more files than these nobody asks whether they were used: a change so large is measured."""
_UNWATCHABLE = frozenset({"120000", MODE})
"""git's modes of a symbolic link, which is followed without being opened, and of a submodule."""
_ATTRIBUTES = ".gitattributes"
_BYTECODE = "__pycache__"
KINDS = ("sources", "requirements", "locks", "packaging", "submodules", "ci")
_SUBMODULE = "160000"
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
_OF_PROJECT = ("dependencies", "optional-dependencies", "requires-python", "dynamic")
_ENTRY_POINTS = ("scripts", "gui-scripts", "entry-points")
_BUILDERS = ("setuptools", "hatch", "flit", "maturin", "scikit-build", "meson-python", "pdm", "uv")
_OF_POETRY = ("dependencies", "group", "extras", "build", "packages", "scripts", "plugins")
_SHA1_DIGITS = 40


def differing_files(path: Path, other: Path, trees: tuple[str, str]) -> frozenset[str] | None:
    """Return the paths, relative to both roots, of the files that differ or are in one root only.

    ``trees`` are git's hashes of what was checked out. ``.git`` is among them: it names the commit.
    Submodules that are checked out in both are looked into. None where a link, another submodule or
    ``.gitattributes`` (what git makes of a file as it checks it out) differs, and where there are
    more than ``MOST``. Bytecode that Python makes of a source counts as its source. OutsideError
    where git fails.
    """
    changed = _differing(path, other, trees)
    return frozenset(changed) if changed is not None and len(changed) <= MOST else None


def _differing(base: Path, head: Path, trees: tuple[str, str]) -> set[str] | None:
    submodules = {*checked_out_in(base)} & {*checked_out_in(head)}
    changed = _changed(base, trees, submodules)
    if changed is None:
        return None
    for name in (_not_as_committed(base) | _not_as_committed(head)) - submodules:
        pair = (base / name, head / name)
        if any(path.is_symlink() or path.is_dir() for path in pair):
            return None  # or another repository in this one
        if not all(path.is_file() for path in pair) or not filecmp.cmp(*pair, shallow=False):
            changed.add(name)
    for name in submodules:
        inner_one, inner_other = base / name, head / name
        commits = (git(inner_one, "rev-parse", "HEAD"), git(inner_other, "rev-parse", "HEAD"))
        inner = _differing(inner_one, inner_other, commits)
        if inner is None:
            return None
        changed |= {f"{name}/{path}" for path in inner}
    return {*changed, ".git"}


def _changed(root: Path, trees: tuple[str, str], submodules: Collection[str]) -> set[str] | None:
    """Return the files in which two trees of git's differ; None where one can't be watched.

    Those of ``submodules`` are left out. None, too, where this repository lacks one of the trees.
    """
    outcome = attempt(root, "diff-tree", "-r", "--raw", "--no-renames", "-z", *trees)
    if outcome.status != 0:
        return None
    fields = iter(outcome.output.split("\0"))
    changed = set()
    for entry in fields:
        if entry:
            modes, name = {*entry.removeprefix(":").split()[:2]}, next(fields)
            if modes == {MODE} and name in submodules:
                continue
            if modes & _UNWATCHABLE:
                return None
            changed.add(name)
    return None if any(Path(name).name == _ATTRIBUTES for name in changed) else changed


def _not_as_committed(root: Path) -> set[str]:
    """Return what was changed, removed or added there since it was checked out."""
    listing = git(root, "ls-files", "--modified", "--deleted", "--others", "-z")
    return {name for name in listing.split("\0") if name and not _is_bytecode(name)}


def _is_bytecode(name: str) -> bool:
    return _BYTECODE in Path(name).parts


def bytecode_of(source: Path) -> Iterator[Path]:
    """Yield the files of bytecode that Python has made of ``source``, and reads in its place."""
    if source.suffix == ".py":
        yield from (source.parent / _BYTECODE).glob(f"{escape(source.stem)}.*.pyc")


def relevant_changes(base: Path, head: Path, trees: tuple[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the changed files by kind: sources, requirements, locks, packaging, submodules, ci.

    ``base`` and ``head`` are worktrees of the git ``trees``. Prose, data and tests are left out.
    Raises OutsideError where git fails.
    """
    kinds: dict[str, list[str]] = {}
    for name, modes in _changed_paths(head, trees):
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
        ("sources", path.suffix.lower() in _SOURCES),
    )
    return next((kind for kind, holds in kinds if holds), "")


def _changed_paths(root: Path, trees: tuple[str, str]) -> list[tuple[str, tuple[str, str]]]:
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


def blobs_of(repository: Repository, tree: str) -> Mapping[str, str]:
    """Return the path of each file in git's ``tree``, with the id of its content.

    Files of submodules are among them, as their commit in ``tree`` has them, where the user's clone
    has that commit. OutsideError where git fails.
    """
    files = dict(_blobs(repository.git_dir, tree))
    for submodule in submodules_of(repository, tree):
        if submodule.git_dir and submodule.available:
            below = _blobs(submodule.git_dir, submodule.commit)
            files |= {f"{readable(submodule.path)}/{name}": blob for name, blob in below}
    return MappingProxyType(files)


def _blobs(git_dir: Path, tree: str) -> Iterator[tuple[str, str]]:
    listed = git(git_dir, f"--git-dir={git_dir}", "ls-tree", "-r", "-z", "--full-tree", tree)
    for entry in listed.split("\0"):
        if entry:
            description, _, path = entry.partition("\t")
            mode, _, blob = description.split()
            if mode != MODE:
                yield readable(path), blob


def blob_id(file: Path, digits: int = _SHA1_DIGITS) -> str:
    """Return the id that git would give the content of ``file``. OSError where it can't be read.

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
