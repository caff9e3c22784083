"""A folder for each side: a worktree of its own, or a build that is kept for the next run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from perfci.errors import OutsideError
from perfci.measure.checkout.build import (
    BuildRecipe,
    Installed,
    build_key,
    installed_for,
    require_unchanged,
    run_build,
)
from perfci.measure.checkout.disk import FolderLock, explaining, take, take_if_free
from perfci.measure.checkout.git import (
    WORKING_TREE,
    Repository,
    ResolvedRev,
    attempt,
    files_of,
    git,
    readable,
)
from perfci.measure.checkout.worktrees import (
    PREFIX,
    Submodule,
    add_tree,
    changed_in_working_tree,
    missing_commit,
    new_name,
    remove_tree,
    submodules_of,
)
from perfci.units import counted, first_of

_CACHE = "__pycache__"
KEPT = 6
"""Builds to keep. Above this number, those that have been unused for longest are removed."""


class SideFolders:
    """The worktrees of one repository below ``cache``.

        <cache>/<repository id>/trees/<name>    used once, then removed
                                builds/<name>   kept for later runs; see ``KeptBuilds``

    Next to each folder is ``<name>.lock``, which the folder's user holds. An unlocked tree was left
    by a process that was killed. ``notes`` are the report's notes on the trees.
    """

    def __init__(self, cache: Path, repository: Repository) -> None:
        self.notes: list[str] = []
        self._repository = repository
        self._cache = cache.resolve()
        self._trees = self._cache / repository.id / "trees"
        self._builds = KeptBuilds(self._trees.with_name("builds"), repository, self._note)

    @contextmanager
    def side(self, resolved: ResolvedRev, recipe: BuildRecipe | None = None) -> Iterator[Path]:
        """Yield a folder with the ``tree`` of ``resolved``, built by ``recipe``.

        The tree may have other benchmark files than the ``commit``. A recipe with commands gets a
        kept build, which all sessions that want the same build share. Submodules that the user's
        clone has are checked out, unless a command does so. Raises UsageError for a command that
        can't be read, MeasureError if a submodule's commit is missing, OutsideError if git, the
        disk or a command fails.
        """
        recipe = replace(recipe or BuildRecipe(), tree=resolved.tree, commit=resolved.commit)
        recipe.commands()  # raises for a command that can't be read, before the check-out
        self._prepare()
        self._note_what_is_missing(resolved)
        recipe = replace(recipe, submodules=self._submodules(resolved, recipe))
        with self._in_kept_build(recipe) if recipe.build else self._in_worktree(recipe) as path:
            yield path

    def sweep(self) -> tuple[Path, ...]:
        """Remove what killed runs left, and return the paths. What living runs use stays."""
        if not self._trees.parent.exists():
            return ()
        removed = list(self._builds.sweep())
        with explaining(f"looking through {self._trees}"):
            entries = self._trees.iterdir() if self._trees.exists() else ()
            left = {entry.name.removesuffix(".lock") for entry in entries}
            for name in sorted(left):
                lock = take_if_free(self._lock_path(name))
                if lock and self._end(self._trees / name, lock):
                    removed.append(self._trees / name)
        return tuple(removed)

    @contextmanager
    def _in_worktree(self, recipe: BuildRecipe) -> Iterator[Path]:
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
    def _in_kept_build(self, recipe: BuildRecipe) -> Iterator[Path]:
        path, lock = self._builds.ready(recipe)
        try:
            yield path
        finally:
            lock.release()
            self._builds.evict()

    def _end(self, path: Path, lock: FolderLock) -> bool:
        """Remove a tree and its lock file. Return whether it worked: a failure costs no results."""
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
            if not ignore.exists():  # so that git ignores a cache inside the repository
                ignore.write_text("*\n", encoding="utf-8")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _submodules(self, resolved: ResolvedRev, recipe: BuildRecipe) -> tuple[Submodule, ...]:
        """Return the submodules to check out. Add a note on those that the clone leaves empty."""
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
        """Add a note if the tree has files in Git LFS, and this machine doesn't fetch them."""
        root = self._repository.root
        if ".gitattributes" not in files_of(self._repository.git_dir, resolved.tree):
            return
        uses = attempt(
            root, "grep", "--quiet", "-e", "filter=lfs", resolved.tree, "--", ".gitattributes"
        )
        if uses.status == 0 and attempt(root, "config", "filter.lfs.smudge").status != 0:
            self._note(
                f"{resolved.rev} has files in Git LFS, which is not set up here, so that they are "
                "pointers: run `git lfs install` and `git lfs fetch --all`."
            )


def stamp_of(tree: Path) -> str:
    """Return a hash of the size and the time of change of each file below ``tree``.

    Bytecode doesn't count, because Python makes it again from a changed source.
    """
    lines = []
    for folder, below, files in os.walk(tree):
        below[:] = sorted(name for name in below if name != _CACHE)
        for path in (Path(folder, name) for name in sorted(files)):
            status = path.lstat()
            lines.append(f"{path.relative_to(tree)}\0{status.st_size}\0{status.st_mtime_ns}")
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


class _BuildFolder:
    """The files of one build. Its users share the lock. Its builder holds the lock alone.

    The ``marker`` is written after all commands have succeeded, and holds the tree's stamp. Its
    time is that of the build's last use. ``partial`` is the marker while it is being written.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.tree = folder / name
        self.lock = folder / f"{name}.lock"
        self.log = folder / f"{name}.log"
        self.marker = folder / f"{name}.complete"
        self.partial = folder / f"{name}.partial"

    def complete(self) -> bool:
        return self.marker.exists() and self.tree.is_dir()

    def as_built(self) -> bool:
        """Return whether the tree has the files that were built, and no others."""
        return self.marker.read_text(encoding="utf-8") == stamp_of(self.tree)


class KeptBuilds:
    """The builds of one repository in ``folder``, of which ``KEPT`` stay for later runs."""

    def __init__(self, folder: Path, repository: Repository, note: Callable[[str], None]) -> None:
        self._folder = folder
        self._repository = repository
        self._note = note

    def ready(self, recipe: BuildRecipe) -> tuple[Path, FolderLock]:
        """Return the built tree, and the lock that protects it from removal. Build it if missing.

        A tree that a measurement has written to counts as missing, unless another session is using
        it. Waits while another process makes the same build. Raises OutsideError if a command
        fails; the next call tries again. Files of the commit that the build changed are noted.
        """
        installed = installed_for(recipe)
        place = _BuildFolder(self._folder, PREFIX + build_key(recipe, installed))
        with explaining(f"building in {self._folder}"):
            self._folder.mkdir(parents=True, exist_ok=True)
            while True:
                alone = take_if_free(place.lock)
                if alone:
                    with alone:
                        if not (place.complete() and place.as_built()):
                            self._build(recipe, place, installed)
                # Taken again as a shared lock: flock can't convert a lock without releasing it.
                lock = take(place.lock, shared=True)
                if place.complete():
                    os.utime(place.marker)
                    self._note_what_the_build_changed(place, recipe)
                    return place.tree, lock
                lock.release()

    def evict(self) -> None:
        """Remove builds until ``KEPT`` are left, the longest unused first, but none in use."""
        with explaining(f"giving up old builds in {self._folder}"):
            markers = sorted(self._folder.glob("*.complete"), key=_last_use)
            excess = len(markers) - KEPT
            for marker in markers:
                if excess <= 0:
                    return
                place = _BuildFolder(self._folder, marker.stem)
                lock = take_if_free(place.lock)
                if lock and self._remove(place, lock):
                    excess -= 1

    def sweep(self) -> list[Path]:
        """Remove builds that were never completed and are not being made; return their paths."""
        removed: list[Path] = []
        if not self._folder.exists():
            return removed
        with explaining(f"looking through {self._folder}"):
            for name in sorted({entry.name.partition(".")[0] for entry in self._folder.iterdir()}):
                place = _BuildFolder(self._folder, name)
                if place.complete():
                    continue
                lock = take_if_free(place.lock)
                if lock is None:
                    continue
                if place.complete():  # by another process, since
                    lock.release()
                elif self._remove(place, lock):
                    removed.append(place.tree)
        return removed

    def _note_what_the_build_changed(self, place: _BuildFolder, recipe: BuildRecipe) -> None:
        listed = git(place.tree, "ls-files", "--modified", "--deduplicate", "-z")
        if names := [name for name in listed.split("\0") if name]:
            self._note(
                f"The build of {recipe.commit[:12]} changed {counted(len(names), 'tracked file')}, "
                f"so what is measured isn't the commit's: {first_of([*map(ascii, names)], 3)}."
            )

    def _build(self, recipe: BuildRecipe, place: _BuildFolder, installed: Installed) -> None:
        place.marker.unlink(missing_ok=True)
        remove_tree(self._repository, place.tree)
        built = False
        try:
            add_tree(self._repository, place.tree, recipe.commit, recipe.tree, recipe.submodules)
            run_build(recipe, place.tree, place.log)
            require_unchanged(installed, recipe)
            place.partial.write_text(stamp_of(place.tree), encoding="utf-8")
            built = True
        finally:
            if not built:
                self._remove_tree(place)
        place.partial.replace(place.marker)  # atomic: the marker is never half written

    def _remove(self, place: _BuildFolder, lock: FolderLock) -> bool:
        """Remove a build, the marker first: without a marker, what remains isn't a build."""
        place.marker.unlink(missing_ok=True)
        removed = self._remove_tree(place)
        if removed:
            place.log.unlink(missing_ok=True)
            place.partial.unlink(missing_ok=True)
        lock.release(remove=removed)
        return removed

    def _remove_tree(self, place: _BuildFolder) -> bool:
        """Remove the tree and return whether that worked.

        A failure only adds a note: it must hide neither the results nor another error.
        """
        try:
            remove_tree(self._repository, place.tree)
        except OutsideError as error:
            self._note(f"A build was left behind: {error.message}")
            return False
        return True


def _last_use(marker: Path) -> float:
    try:
        return marker.stat().st_mtime
    except FileNotFoundError:  # another process gave it up
        return 0.0
