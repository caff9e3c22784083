"""A folder for each side: its own git worktree or a kept build, checked and removed at the end."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

from perfci.errors import OutsideError
from perfci.measure.checkout.build import BUILD_TIMEOUT_S, BuildRecipe, make_recipe
from perfci.measure.checkout.disk import FolderLock, explaining, take, take_if_free
from perfci.measure.checkout.git import (
    WORKING_TREE,
    Repository,
    ResolvedRev,
    attempt,
    git,
    readable,
)
from perfci.measure.checkout.kept_builds import KeptBuilds, add_tree, new_name, remove_tree
from perfci.measure.checkout.submodules import (
    Submodule,
    changed_in_working_tree,
    checked_out_in,
    missing_commit,
    submodules_of,
)

_UNTRACKED = "?"
_IMPORTABLE = frozenset({".py", ".so", ".pth"})
_BUILT = (".perfci-build", "build", "__pycache__")


class Worktrees:
    """The worktrees of one repository below ``cache``.

        <cache>/<repository id>/trees/<name>    one use; removed at its end
                                builds/<name>   kept; see ``kept_builds``

    Each has ``<name>.lock`` next to it, which its user holds: what lies there unlocked was left
    by a process that was killed. ``notes`` are the report's notes on the trees.
    """

    def __init__(self, cache: Path, repository: Repository) -> None:
        self.notes: list[str] = []
        self._repository = repository
        self._cache = cache.resolve()
        self._trees = self._cache / repository.id / "trees"
        self._builds = KeptBuilds(self._trees.with_name("builds"), repository, self._note)

    @contextmanager
    def side(
        self,
        resolved: ResolvedRev,
        *,
        build: Sequence[str] = (),
        python: str = sys.executable,
        environment: Mapping[str, str] | None = None,
        timeout: float = BUILD_TIMEOUT_S,
        enter: tuple[str, ...] = (),
        passed: Sequence[str] = (),
        own_environment: bool = False,
    ) -> Iterator[Path]:
        """Give ``resolved`` a folder of its own, built with the ``build`` commands.

        Its ``tree`` is checked out, which may have other benchmark files than its ``commit``.
        ``{python}`` in a command is ``python``. The commands have ``environment`` (nothing by
        default) and ``timeout`` s in all; ``enter`` goes before each. Those of its variables that
        are ``passed`` make another build where they have other values. With commands the folder is
        shared with others who want the same build. With an ``own_environment`` they install into
        one that lies in the folder, over that of ``python``. Submodules that the user's clone has
        are checked out in it, unless a ``build`` command does so. Raises UsageError for a command
        that can't be read, MeasureError where a submodule's commit is missing, OutsideError where
        git, the disk or a command fails.
        """
        recipe = make_recipe(
            *(resolved, build, python, environment or {}, timeout, enter, passed),
            own_environment=own_environment,
        )
        self._prepare()
        self._note_what_is_missing(resolved)
        recipe = replace(recipe, submodules=self._submodules(resolved, recipe))
        with self._built(recipe) if recipe.commands else self._own(recipe) as path:
            yield path

    def sweep(self) -> tuple[Path, ...]:
        """Remove what killed runs left and return the paths; what living ones use stays."""
        if not self._trees.parent.exists():
            return ()
        removed = list(self._builds.sweep())
        with explaining(f"looking through {self._trees}"):
            left = {entry.name.removesuffix(".lock") for entry in _entries(self._trees)}
            for name in sorted(folder for folder in left if not self._lock_path(folder).is_dir()):
                lock = take_if_free(self._lock_path(name))
                if lock and self._end(self._trees / name, lock):
                    removed.append(self._trees / name)
        return tuple(removed)

    @contextmanager
    def _own(self, recipe: BuildRecipe) -> Iterator[Path]:
        name = new_name()
        path = self._trees / name
        with explaining(f"making {path}"):
            lock = take(self._lock_path(name))
        try:
            add_tree(self._repository, path, recipe.commit, recipe.tree, recipe.submodules)
            yield path
        finally:
            self._end(path, lock)

    @contextmanager
    def _built(self, recipe: BuildRecipe) -> Iterator[Path]:
        path, lock = self._builds.ready(recipe)
        try:
            yield path
        finally:
            lock.release()
            self._builds.evict()

    def _end(self, path: Path, lock: FolderLock) -> bool:
        """Remove a tree and its lock file; what can't be removed must not cost the results."""
        try:
            remove_tree(self._repository, path)
        except OutsideError as error:
            self._note(f"A worktree was left behind: {error.message}")
            lock.release()
            return False
        lock.release(remove=True)
        return True

    def _lock_path(self, name: str) -> Path:
        return self._trees / f"{name}.lock"

    def _prepare(self) -> None:
        with explaining(f"making the cache folder {self._cache}"):
            self._trees.mkdir(parents=True, exist_ok=True)
            ignore = self._cache / ".gitignore"
            if not ignore.exists():  # a cache inside the repository is no change of the user's
                ignore.write_text("*\n", encoding="utf-8")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _submodules(self, resolved: ResolvedRev, recipe: BuildRecipe) -> tuple[Submodule, ...]:
        """Return what to check out; notes what the user's clone leaves empty, too."""
        if recipe.checks_out_submodules:
            return ()
        submodules = submodules_of(self._repository, resolved.tree)
        for submodule in submodules:
            if submodule.git_dir and not submodule.available:
                raise missing_commit(submodule, resolved.rev)
        if empty := [module.path for module in submodules if not module.available]:
            self._note(
                f"This clone has submodules that are not checked out, nor are they on the sides: "
                f"{readable(', '.join(empty))}. Run `git submodule update --init --recursive` if "
                "benchmarks need them."
            )
        if resolved.rev == WORKING_TREE:
            for path in changed_in_working_tree(self._repository):
                self._note(
                    f"Changes in the submodule {readable(path)} that are not committed there are "
                    "not measured."
                )
        return tuple(module for module in submodules if module.available)

    def _note_what_is_missing(self, resolved: ResolvedRev) -> None:
        root = self._repository.root
        uses = attempt(
            root, "grep", "--quiet", "-e", "filter=lfs", resolved.tree, "--", ".gitattributes"
        )
        if uses.status == 0 and attempt(root, "config", "filter.lfs.smudge").status != 0:
            self._note(
                f"{resolved.rev} has files in Git LFS, which is not set up here, so that they are "
                "pointers: run `git lfs install` and `git lfs fetch --all`."
            )


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


def uncommitted(root: Path) -> dict[str, str]:
    """Return what differs from the commit in the worktree ``root``, each with its content's hash.

    These are the commit's files that were changed or removed, and importable ones that were added
    and that git doesn't ignore. What a build leaves (``build``, ``.perfci-build``, ``*.egg-info``)
    and bytecode is left out. Submodules that are checked out are looked into. Raises OutsideError
    where git fails.
    """
    output = git(
        root,
        *("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"),
        "--ignore-submodules=dirty",
    )
    entries = ((entry[:2].strip(), entry[3:]) for entry in output.split("\0") if entry)
    files = {
        name: _digest(root / name)
        for state, name in entries
        if not state.startswith(_UNTRACKED) or _is_importable(name)
    }
    for path in checked_out_in(root):
        files |= {f"{path}/{name}": content for name, content in uncommitted(root / path).items()}
    return files


def written_since(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files that were written between two answers of ``uncommitted``."""
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def _is_importable(name: str) -> bool:
    path = PurePosixPath(name)
    return path.suffix in _IMPORTABLE and not any(
        part in _BUILT or part.endswith(".egg-info") for part in path.parts
    )


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if (path / ".git").exists():
        return f"submodule at {git(path, 'rev-parse', 'HEAD')}"
    if not path.is_file():
        return "no file"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
