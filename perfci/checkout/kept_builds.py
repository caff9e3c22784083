"""Builds that are made once and kept for the next run, the least recently used given up."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perfci.checkout.build import run_build
from perfci.checkout.disk import explaining
from perfci.checkout.lock import Lock, take, take_if_free
from perfci.checkout.recipe import Recipe
from perfci.checkout.repository import Repository
from perfci.checkout.tree import PREFIX, add_tree, remove_tree
from perfci.errors import OutsideError

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
        """There only after every command succeeded; its time is that of the last use."""
        return self.folder / f"{self.name}.complete"

    def complete(self) -> bool:
        return self.marker.exists() and self.tree.is_dir()


class KeptBuilds:
    """The builds of one repository in ``folder``, at most six that nobody uses."""

    def __init__(self, folder: Path, repository: Repository, note: Callable[[str], None]) -> None:
        self._folder = folder
        self._repository = repository
        self._note = note

    def ready(self, recipe: Recipe) -> tuple[Path, Lock]:
        """Return the built tree and the lock that keeps it there; build it if nobody did.

        Waits where another process is building the same. OutsideError where a command fails;
        the next one who asks tries again.
        """
        place = _Place(self._folder, PREFIX + recipe.key)
        with explaining(f"building in {self._folder}"):
            self._folder.mkdir(parents=True, exist_ok=True)
            while True:
                lock = take(place.lock, shared=True)
                if place.complete():
                    os.utime(place.marker)
                    return place.tree, lock
                lock.release()
                # Taken anew and not upgraded: flock lets go in between anyway.
                with take(place.lock):
                    if not place.complete():
                        self._build(recipe, place)

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

    def _build(self, recipe: Recipe, place: _Place) -> None:
        place.marker.unlink(missing_ok=True)
        remove_tree(self._repository, place.tree)
        built = False
        try:
            add_tree(self._repository, place.tree, recipe.commit)
            run_build(recipe, place.tree, place.log)
            built = True
        finally:
            if not built:
                self._remove_tree(place)
        place.marker.touch()

    def _remove(self, place: _Place, lock: Lock) -> bool:
        """The marker goes first: from then on what is left is no build."""
        place.marker.unlink(missing_ok=True)
        removed = self._remove_tree(place)
        if removed:
            place.log.unlink(missing_ok=True)
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


def _last_use(marker: Path) -> float:
    try:
        return marker.stat().st_mtime
    except FileNotFoundError:  # another process gave it up
        return 0.0
