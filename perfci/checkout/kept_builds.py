"""Builds that are made once and kept for the next run, the least recently used given up."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perfci.checkout.build import run_build
from perfci.checkout.disk import explaining, remove_folder
from perfci.checkout.lock import Lock, take, take_if_free
from perfci.checkout.manifest import Differences, compare_with, make_manifest
from perfci.checkout.recipe import Recipe
from perfci.checkout.repository import Repository
from perfci.checkout.tree import PREFIX, add_tree, remove_tree
from perfci.errors import MeasureError, OutsideError

KEPT = 6


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one build lies. Its users hold the lock together, its builder alone."""

    folder: Path
    name: str

    @property
    def tree(self) -> Path:
        return self.folder / self.name

    @property
    def lock(self) -> Path:
        return self.folder / f"{self.name}.lock"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def marker(self) -> Path:
        """There only after every command succeeded; its time is that of the last use.

        It holds the manifest of what was built.
        """
        return self.folder / f"{self.name}.complete"

    @property
    def partial(self) -> Path:
        """The marker while it is written."""
        return self.folder / f"{self.name}.partial"

    def complete(self) -> bool:
        return self.marker.exists() and self.tree.is_dir()

    def differences(self) -> Differences:
        """Return how the tree differs from what was built."""
        try:
            return compare_with(self.marker.read_text(encoding="utf-8"), self.tree)
        except ValueError:  # kept by a perfci that kept no manifest, or damaged
            return Differences(changed=("its manifest",))


class KeptBuilds:
    """The builds of one repository in ``folder``, at most six that nobody uses."""

    def __init__(self, folder: Path, repository: Repository, note: Callable[[str], None]) -> None:
        self._folder = folder
        self._repository = repository
        self._note = note

    def ready(self, recipe: Recipe) -> tuple[Path, Lock]:
        """Return the built tree and the lock that keeps it there; build it if nobody did.

        Waits where another process is building the same. OutsideError where a command fails;
        the next one who asks tries again. What was measured in it before may have changed it: it
        is put back, or built again, and that is noted; MeasureError where another session is at
        work in it.
        """
        place = _Place(self._folder, PREFIX + recipe.key)
        with explaining(f"building in {self._folder}"):
            self._folder.mkdir(parents=True, exist_ok=True)
            while True:
                alone = take_if_free(place.lock)
                if alone:
                    with alone:
                        if not (place.complete() and self._put_back(place)):
                            self._build(recipe, place)
                # Taken anew and not changed to a shared one: flock lets go in between anyway.
                lock = take(place.lock, shared=True)
                if place.complete():
                    if not alone:
                        self._require_unchanged(place, lock)
                    os.utime(place.marker)
                    return place.tree, lock
                lock.release()

    def evict(self) -> None:
        """Give up the builds that were not used for longest, but none in use."""
        with explaining(f"giving up old builds in {self._folder}"):
            markers = sorted(self._folder.glob("*.complete"), key=_last_use)
            excess = len(markers) - KEPT
            for marker in markers:
                if excess <= 0:
                    return
                place = _Place(self._folder, marker.stem)
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
                place = _Place(self._folder, name)
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

    def _put_back(self, place: _Place) -> bool:
        """Remove what was added since it was built; say whether all else is as it was."""
        found = place.differences()
        if found.changed:
            self._note(
                f"A kept build was changed after it was made ({_some(found.changed)}), and built "
                "again: what was measured in it wrote to it."
            )
            return False
        for name in (*found.added, *found.bytecode):
            path = place.tree / name
            if path.is_symlink() or not path.is_dir():
                path.unlink()
            elif name in found.added:
                remove_folder(path)
        if found.added:
            self._note(
                f"Removed from a kept build what was added to it after it was made: "
                f"{_some(found.added)}."
            )
        return True

    def _require_unchanged(self, place: _Place, lock: Lock) -> None:
        """What others that are at work in it add is theirs; what they change is measured here."""
        found = place.differences()
        if found.changed:
            lock.release()
            raise MeasureError(
                "build-changed",
                f"the kept build {place.tree} was changed by what another session measures in it: "
                f"{_some(found.changed)}",
                "Try again when that session has ended; the build is then made anew.",
            )

    def _build(self, recipe: Recipe, place: _Place) -> None:
        place.marker.unlink(missing_ok=True)
        remove_tree(self._repository, place.tree)
        built = False
        try:
            add_tree(self._repository, place.tree, recipe.commit)
            run_build(recipe, place.tree, place.log)
            manifest = make_manifest(place.tree)
            built = True
        finally:
            if not built:
                self._remove_tree(place)
        place.partial.write_text(manifest, encoding="utf-8")
        place.partial.replace(place.marker)  # whole, or not at all

    def _remove(self, place: _Place, lock: Lock) -> bool:
        """The marker goes first: from then on what is left is no build."""
        place.marker.unlink(missing_ok=True)
        removed = self._remove_tree(place)
        if removed:
            place.log.unlink(missing_ok=True)
            place.partial.unlink(missing_ok=True)
        lock.release(remove=removed)
        return removed

    def _remove_tree(self, place: _Place) -> bool:
        """What can't be removed must cost neither the results nor the error on its way."""
        try:
            remove_tree(self._repository, place.tree)
        except OutsideError as error:
            self._note(f"A build was left behind: {error.message}")
            return False
        return True


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(ascii, names[:3]))
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _last_use(marker: Path) -> float:
    try:
        return marker.stat().st_mtime
    except FileNotFoundError:  # another process gave it up
        return 0.0
