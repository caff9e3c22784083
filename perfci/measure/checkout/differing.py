"""What differs between two trees: files, changes that a benchmark should exercise, contents."""

from __future__ import annotations

import filecmp
import hashlib
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from glob import escape
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from perfci.measure.checkout.git import attempt, git, readable

MOST = 5_000
"""Of more files than these nobody asks whether they were used: a change so large is measured."""
_UNWATCHABLE = frozenset({"120000", "160000"})
"""git's modes of a symbolic link, which is followed without being opened, and of a submodule."""
_ATTRIBUTES = ".gitattributes"
_BYTECODE = "__pycache__"
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
_SHA1_DIGITS = 40


def differing_files(one: Path, other: Path, trees: tuple[str, str]) -> frozenset[str] | None:
    """Return the paths, relative to both roots, of the files that differ or are in one root only.

    ``trees`` are git's hashes of what was checked out. ``.git`` is among them: it names the commit.
    None where a link, a submodule or ``.gitattributes`` (what git makes of a file as it checks it
    out) differs, and where there are more than ``MOST``. Bytecode that Python makes of a source
    counts as its source. OutsideError where git fails.
    """
    changed = _changed(one, trees)
    if changed is None:
        return None
    untracked = [_not_as_committed(root) for root in (one, other)]
    if any(name.endswith("/") for names in untracked for name in names):
        return None  # another repository in this one
    for name in untracked[0] | untracked[1]:
        pair = (one / name, other / name)
        if any(path.is_symlink() for path in pair):
            return None
        if not all(path.is_file() for path in pair) or not filecmp.cmp(*pair, shallow=False):
            changed.add(name)
    return frozenset({*changed, ".git"}) if len(changed) < MOST else None


def _changed(root: Path, trees: tuple[str, str]) -> set[str] | None:
    """Return the files in which two trees of git's differ; None where one can't be watched."""
    told = iter(git(root, "diff-tree", "-r", "--raw", "--no-renames", "-z", *trees).split("\0"))
    changed = set()
    for entry in told:
        if entry:
            before, after, *_ = entry.removeprefix(":").split()
            if {before, after} & _UNWATCHABLE:
                return None
            changed.add(next(told))
    return None if any(Path(name).name == _ATTRIBUTES for name in changed) else changed


def _not_as_committed(root: Path) -> set[str]:
    """Return what was changed, removed or added there since it was checked out."""
    told = git(root, "ls-files", "--modified", "--deleted", "--others", "-z")
    return {name for name in told.split("\0") if name and not _is_bytecode(name)}


def _is_bytecode(name: str) -> bool:
    return _BYTECODE in Path(name).parts


def bytecode_of(source: Path) -> Iterator[Path]:
    """Yield the files of bytecode that Python has made of ``source``, and reads in its place."""
    if source.suffix == ".py":
        yield from (source.parent / _BYTECODE).glob(f"{escape(source.stem)}.*.pyc")


def relevant_changes(
    base: Path, head: Path, trees: tuple[str, str], is_benchmark: Callable[[str], bool]
) -> dict[str, tuple[str, ...]]:
    """Return the changed files by kind: sources, requirements, locks, packaging, submodules, ci.

    ``base`` and ``head`` are worktrees of the git ``trees``. Prose, data, tests and benchmarks,
    which both sides take from head, are left out. Raises OutsideError where git fails.
    """
    kinds: dict[str, list[str]] = {}
    for name, modes in _changed_paths(head, trees):
        kind = "submodules" if _SUBMODULE in modes else kind_of(name)
        if name == "pyproject.toml" or name.endswith("/pyproject.toml"):
            kind = "packaging" if _runs_otherwise(base / name, head / name) else ""
        if kind and not is_benchmark(name):
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


def blobs_of(repository: Path, tree: str) -> Mapping[str, str]:
    """Return the path of each file in git's ``tree``, with the id of its content.

    Files of submodules are among them, as their commit in ``tree`` has them, where the checkout has
    that commit. OutsideError where git fails.
    """
    listed = git(repository, "ls-tree", "-r", "-z", "--full-tree", tree)
    files = {}
    for entry in listed.split("\0"):
        if entry:
            told, _, path = entry.partition("\t")
            mode, _, blob = told.split()
            if mode != _SUBMODULE:
                files[readable(path)] = blob
            elif _has_commit(inner := repository / path, blob):
                files |= {f"{path}/{name}": one for name, one in blobs_of(inner, blob).items()}
    return MappingProxyType(files)


def _has_commit(submodule: Path, commit: str) -> bool:
    """Whether a submodule is checked out here, and its repository has the commit."""
    if not (submodule / ".git").exists():
        return False
    offline = {"GIT_NO_LAZY_FETCH": "1"}
    found = attempt(submodule, "cat-file", "-e", f"{commit}^{{tree}}", environment=offline)
    return found.status == 0


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
