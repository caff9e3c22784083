"""A folder for each side: a worktree of its own, or a build that is kept for the next run."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from perfci.measure.checkout.build import (
    BuildRecipe,
    Installed,
    build_key,
    installed_for,
    require_unchanged,
    run_build,
)
from perfci.measure.checkout.disk import FolderLock, explaining, take, take_if_free
from perfci.measure.checkout.git import WORKING_TREE, Repository, ResolvedRev, git, readable
from perfci.measure.checkout.worktrees import (
    PREFIX,
    add_tree,
    changed_in_working_tree,
    check_out_submodules,
    lfs_pointers,
    remove_tree,
    uncommitted,
)
from perfci.units import counted, first_of

KEPT = 6
"""Builds to keep. Above this number, those that have been unused for longest are removed."""


class _SideFolder:
    """The files of one worktree. Its users hold the lock, a build's users share it.

    The ``marker`` of a build is written after all commands have succeeded, and holds what the build
    changed of the commit. Its time is that of the build's last use.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.tree = folder / name
        self.lock = folder / f"{name}.lock"
        self.log = folder / f"{name}.log"
        self.marker = folder / f"{name}.complete"
        self.partial = folder / f"{name}.partial"

    def is_complete(self) -> bool:
        return self.marker.exists() and self.tree.is_dir()

    def is_as_built(self) -> bool:
        """Return whether the commit's files are still as the build left them."""
        return self.is_complete() and self.marker.read_text(encoding="utf-8") == _state(self.tree)


class SideFolders:
    """The worktrees of one repository, in ``<cache>/<repository id>/trees/<name>``.

    An unbuilt one is used once, then removed. A built one is kept, and has a marker. Next to each
    is ``<name>.lock``, which the tree's user holds. An unlocked tree without a marker was left by a
    process that was killed. All names have the same length, because a path's length shifts a
    process's stack, which can change what is measured. ``notes`` are the report's notes.
    """

    def __init__(self, cache: Path, repository: Repository) -> None:
        self.notes: list[str] = []
        self._repository = repository
        self._cache = cache.resolve()
        self._trees = self._cache / repository.id / "trees"

    @contextmanager
    def side(self, resolved: ResolvedRev, recipe: BuildRecipe | None = None) -> Iterator[Path]:
        """Yield a folder with the ``tree`` of ``resolved``, built by ``recipe``.

        The tree may have other benchmark files than the ``commit``. A recipe with commands gets a
        kept build, which all sessions that want the same build share. Submodules that the user's
        clone has are checked out, unless a command does so. MeasureError if a submodule's commit is
        missing, OutsideError if git, the disk or a command fails.
        """
        recipe = replace(recipe or BuildRecipe(), tree=resolved.tree, commit=resolved.commit)
        if resolved.rev == WORKING_TREE:
            for name in changed_in_working_tree(self._repository):
                self._note(
                    f"Uncommitted changes in the submodule {readable(name)} are not measured."
                )
        with ExitStack() as stack:
            with explaining(f"checking out below {self._trees}"):
                self._trees.mkdir(parents=True, exist_ok=True)
                ignore = self._cache / ".gitignore"
                if not ignore.exists():  # so that git ignores a cache inside the repository
                    ignore.write_text("*\n", encoding="utf-8")
                made = self._in_kept_build(recipe) if recipe.build else self._in_worktree(recipe)
                path = stack.enter_context(made)
            yield path

    def sweep(self) -> tuple[Path, ...]:
        """Remove what killed runs left, and return the paths. What living runs use stays."""
        removed = []
        entries = self._trees.iterdir() if self._trees.exists() else ()
        for name in sorted({entry.name.partition(".")[0] for entry in entries}):
            place = _SideFolder(self._trees, name)
            lock = None if place.is_complete() else take_if_free(place.lock)
            if lock and place.is_complete():  # by another process, since
                lock.release()
            elif lock and self._remove(place, lock):
                removed.append(place.tree)
        return tuple(removed)

    @contextmanager
    def _in_worktree(self, recipe: BuildRecipe) -> Iterator[Path]:
        place = _SideFolder(self._trees, PREFIX + secrets.token_hex(8))
        lock = take(place.lock)
        try:
            self._check_out(recipe, place)
            yield place.tree
        finally:
            self._remove(place, lock)

    @contextmanager
    def _in_kept_build(self, recipe: BuildRecipe) -> Iterator[Path]:
        modules = (self._repository.common_dir / "modules").glob("*")
        recipe = replace(recipe, submodules=tuple(sorted(path.name for path in modules)))
        installed = installed_for(recipe)
        place = _SideFolder(self._trees, PREFIX + build_key(recipe, installed))
        lock = self._built(recipe, place, installed)
        os.utime(place.marker)
        try:
            listed = git(place.tree, "ls-files", "--modified", "-z").split("\0")
            if names := [ascii(name) for name in dict.fromkeys(listed) if name]:
                self._note(
                    f"The build of {recipe.commit[:12]} changed "
                    f"{counted(len(names), 'tracked file')}, so the measured files are not the "
                    f"commit's: {first_of(names, 3)}."
                )
            yield place.tree
        finally:
            lock.release()
            self._evict()

    def _built(self, recipe: BuildRecipe, place: _SideFolder, installed: Installed) -> FolderLock:
        """Return the lock that protects a build from removal. Build it if it is missing.

        Waits while another process makes the same build. A build that was written to is made again,
        unless another session is using it.
        """
        while True:
            if alone := take_if_free(place.lock):
                with alone:
                    if not place.is_as_built() or build_times(place.tree)[0] < recipe.not_before:
                        self._build(recipe, place, installed)
            # Taken again as a shared lock: flock can't convert a lock without releasing it.
            lock = take(place.lock, shared=True)
            if place.is_complete():
                return lock
            lock.release()

    def _build(self, recipe: BuildRecipe, place: _SideFolder, installed: Installed) -> None:
        place.marker.unlink(missing_ok=True)
        remove_tree(self._repository, place.tree)
        try:
            self._check_out(recipe, place)
            run_build(recipe, place.tree, place.log)
            place.log.touch()  # see build_times
            require_unchanged(installed, recipe)
            place.partial.write_text(_state(place.tree), encoding="utf-8")
        except BaseException:
            self._remove_tree(place)
            raise
        place.partial.replace(place.marker)  # atomic: the marker is never half written

    def _check_out(self, recipe: BuildRecipe, place: _SideFolder) -> None:
        add_tree(self._repository, place.tree, recipe.commit, recipe.tree)
        if pointers := lfs_pointers(place.tree):
            self._note(
                "Git LFS isn't installed for this clone, so the sides have pointers instead of the "
                f"content of {counted(len(pointers), 'file')} ({first_of(pointers, 3)}): run "
                "`git lfs install`, then `git lfs fetch origin BASE HEAD`."
            )
        if any("submodule" in command for command in recipe.build):
            return
        if empty := check_out_submodules(self._repository, place.tree):
            self._note(
                f"This clone has submodules that are not checked out, nor are they on the sides: "
                f"{readable(', '.join(empty))}. Run `git submodule update --init --recursive` if "
                "benchmarks need them."
            )

    def _evict(self) -> None:
        """Remove builds until ``KEPT`` are left, the longest unused first, but none in use."""
        markers = sorted(self._trees.glob("*.complete"), key=_last_use)
        excess = len(markers) - KEPT
        for marker in markers:
            place = _SideFolder(self._trees, marker.stem)
            if excess > 0 and (lock := take_if_free(place.lock)):
                excess -= self._remove(place, lock)

    def _remove(self, place: _SideFolder, lock: FolderLock) -> bool:
        """Remove a tree, its marker first: without a marker, what remains isn't a build."""
        place.marker.unlink(missing_ok=True)
        removed = self._remove_tree(place)
        if removed:
            place.log.unlink(missing_ok=True)
            place.partial.unlink(missing_ok=True)
        lock.release(remove=removed)
        return removed

    def _remove_tree(self, place: _SideFolder) -> bool:
        """Remove the tree and return whether that worked: a failure costs no results."""
        try:
            remove_tree(self._repository, place.tree)
        except OSError as error:
            self._note(f"A worktree was left behind: {place.tree}: {error.strerror or error}")
            return False
        return True

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def build_times(tree: Path) -> tuple[float, float]:
    """Return when the build in ``tree`` began and ended, in s since 1970."""
    log = _SideFolder(tree.parent, tree.name).log
    return (tree / ".git").stat().st_mtime, log.stat().st_mtime


def _state(tree: Path) -> str:
    return json.dumps(uncommitted(tree))


def _last_use(marker: Path) -> float:
    try:
        return marker.stat().st_mtime
    except FileNotFoundError:  # another process gave it up
        return 0.0
