"""Git worktrees, and builds that are made once and kept for the next run."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.errors import MeasureError, OutsideError
from perfci.measure.checkout.build import BuildRecipe, run_build
from perfci.measure.checkout.disk import FolderLock, explaining, remove_folder, take, take_if_free
from perfci.measure.checkout.environments import (
    in_own_environment,
    installed_for,
    require_unchanged,
)
from perfci.measure.checkout.git import Repository, attempt, failure, git
from perfci.measure.checkout.submodules import Submodule, check_out_submodules
from perfci.units import counted

# What a kept build consists of, so that one which was changed since isn't measured as it.
_CACHE = "__pycache__"
KEPT = 6
PREFIX = "perfci-"
"""Begins the last part of each path, after which git names the registration."""
_PROBE_BYTES = 1 << 20
_TRIES = 3


@dataclass(frozen=True, slots=True)
class TreeDifferences:
    """Paths below the tree. ``bytecode`` is what Python writes next to what it imports."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    bytecode: tuple[str, ...] = ()


def make_manifest(tree: Path) -> str:
    """Return the manifest of all that lies below ``tree``, which nobody writes to. OSError."""
    return json.dumps({name: _told(entry) for name, entry in _entries(tree)})


def changed_since(before: str, after: str) -> tuple[str, ...]:
    """Return the paths of the manifest ``before`` that ``after`` hasn't got, or as another file."""
    old, new = json.loads(before), json.loads(after)
    return tuple(
        name for name in sorted(old) if new.get(name) != old[name] and not _is_bytecode(name)
    )


def compare_with(manifest: str, tree: Path) -> TreeDifferences:
    """Return how ``tree`` differs from what it was; ValueError where that is no manifest.

    Bytecode that differs is listed separately: Python makes it again. Added files aren't read.
    """
    kept = json.loads(manifest)
    if not isinstance(kept, dict) or not kept:
        raise ValueError("no manifest")
    if tree.is_symlink():
        return TreeDifferences(changed=(".",))
    added: list[str] = []
    bytecode: list[str] = []
    changed: set[str] = set()
    left = {name for name in kept if not _is_bytecode(name)}
    try:
        for name, entry in _entries(tree, lambda name: name in kept or _is_bytecode(name)):
            left.discard(name)
            if name in kept and _told(entry, kept[name]) == kept[name]:
                continue
            if _is_bytecode(name):
                bytecode.append(name)
            elif name in kept:
                changed.add(name)
            else:
                added.append(name)
    except OSError as error:  # a folder that may no longer be read was changed
        changed.add(os.path.relpath(error.filename, tree) if error.filename else ".")
    return TreeDifferences(tuple(sorted(changed | left)), tuple(sorted(added)), tuple(bytecode))


def _entries(
    tree: Path, enter: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the paths below ``tree``, those in folders that ``enter`` refuses left out.

    Links aren't followed. Without recursion: a benchmark can nest folders without end.
    """
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(tree / below) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
        for entry in ordered:
            name = f"{below}/{entry.name}" if below else entry.name
            yield name, entry
            if entry.is_dir(follow_symlinks=False) and enter(name):
                waiting.append(name)


def _told(entry: os.DirEntry[str], kept: object = None) -> list[object]:
    """Return what identifies an entry: its mode, size and SHA-256, or where a link leads.

    A file whose mode or size isn't that of ``kept`` isn't read: it is another one anyway.
    """
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        return ["link", str(Path(entry.path).readlink())]
    if not stat.S_ISREG(status.st_mode):
        return ["other", status.st_mode]
    described = ["file", status.st_mode, status.st_size]
    if isinstance(kept, list) and kept[:3] != described:
        return described
    descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return [*described, digest.hexdigest()]


def _is_bytecode(name: str) -> bool:
    folder, _, file = name.rpartition("/")
    inside = folder == _CACHE or folder.endswith(f"/{_CACHE}")
    return file == _CACHE or (inside and file.endswith(".pyc"))


@dataclass(frozen=True, slots=True)
class _BuildFolder:
    """The folder of one build. Its users share the lock. Its builder holds it alone."""

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

        Its first line names the commit's files that the build changed, the rest is the manifest
        of what was built.
        """
        return self.folder / f"{self.name}.complete"

    @property
    def partial(self) -> Path:
        """The marker while it is written."""
        return self.folder / f"{self.name}.partial"

    def complete(self) -> bool:
        return self.marker.exists() and self.tree.is_dir()

    def differences(self) -> TreeDifferences:
        """Return how the tree differs from what was built."""
        try:
            return compare_with(self._marked()[1], self.tree)
        except ValueError:  # damaged
            return TreeDifferences(changed=("its manifest",))

    def changed_by_the_build(self) -> tuple[str, ...]:
        """Return the commit's files that the build changed or removed."""
        return self._marked()[0]

    def _marked(self) -> tuple[tuple[str, ...], str]:
        """ValueError where it is damaged."""
        first, _, manifest = self.marker.read_text(encoding="utf-8").partition("\n")
        changed = json.loads(first)
        if not isinstance(changed, list) or not manifest:
            raise ValueError("no list of files, or no manifest")
        return tuple(map(str, changed)), manifest


class KeptBuilds:
    """The builds of one repository in ``folder``, at most six that no one uses."""

    def __init__(self, folder: Path, repository: Repository, note: Callable[[str], None]) -> None:
        self._folder = folder
        self._repository = repository
        self._note = note

    def ready(self, recipe: BuildRecipe) -> tuple[Path, FolderLock]:
        """Return the built tree and the lock that keeps it there; build it if no one did.

        Waits where another process is building the same. OutsideError where a command fails;
        the next one who asks tries again. What was measured in it before may have changed it: it
        is put back, or built again, and that is noted, as is what of the commit the build itself
        changed; MeasureError where another session is at work in it.
        """
        place = _BuildFolder(self._folder, PREFIX + recipe.key)
        with explaining(f"building in {self._folder}"):
            self._folder.mkdir(parents=True, exist_ok=True)
            while True:
                alone = take_if_free(place.lock)
                if alone:
                    with alone:
                        if not (place.complete() and self._put_back(place)):
                            self._build(recipe, place)
                # Taken again and not changed to a shared one: flock lets go in between anyway.
                lock = take(place.lock, shared=True)
                if place.complete():
                    if not alone:
                        self._require_unchanged(place, lock)
                    os.utime(place.marker)
                    self._note_what_the_build_changed(place, recipe)
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

    def _put_back(self, place: _BuildFolder) -> bool:
        """Remove what was added since it was built; say whether all else is as it was."""
        differences = place.differences()
        if differences.changed:
            self._note(
                f"A kept build was changed after it was made ({_some(differences.changed)}), "
                "and built again: what was measured in it wrote to it."
            )
            return False
        for name in (*differences.added, *differences.bytecode):
            path = place.tree / name
            if path.is_symlink() or not path.is_dir():
                path.unlink()
            elif name in differences.added:
                remove_folder(path)
        if differences.added:
            self._note(
                f"Removed from a kept build what was added to it after it was made: "
                f"{_some(differences.added)}."
            )
        return True

    def _require_unchanged(self, place: _BuildFolder, lock: FolderLock) -> None:
        """Raise where a file changed. Files that other sessions add meanwhile don't count."""
        differences = place.differences()
        if differences.changed:
            lock.release()
            raise MeasureError(
                "build-changed",
                f"the kept build {place.tree} was changed by what another session measures in it: "
                f"{_some(differences.changed)}",
                "Try again when that session has ended; the build is then made anew.",
            )

    def _note_what_the_build_changed(self, place: _BuildFolder, recipe: BuildRecipe) -> None:
        changed = place.changed_by_the_build()
        if changed:
            files = counted(len(changed), "tracked file")
            self._note(
                f"The build of {recipe.commit[:12]} changed {files}, so what is measured isn't "
                f"the commit's: {_some(changed)}."
            )

    def _build(self, recipe: BuildRecipe, place: _BuildFolder) -> None:
        place.marker.unlink(missing_ok=True)
        remove_tree(self._repository, place.tree)
        built = False
        try:
            add_tree(self._repository, place.tree, recipe.commit, recipe.tree, recipe.submodules)
            before = make_manifest(place.tree)
            installed = installed_for(recipe)
            own = in_own_environment(recipe, place.tree) if recipe.own_environment else recipe
            run_build(own, place.tree, place.log)
            require_unchanged(installed, recipe)
            manifest = make_manifest(place.tree)
            changed = changed_since(before, manifest)
            built = True
        finally:
            if not built:
                self._remove_tree(place)
        place.partial.write_text(f"{json.dumps(changed)}\n{manifest}", encoding="utf-8")
        place.partial.replace(place.marker)  # whole, or not at all

    def _remove(self, place: _BuildFolder, lock: FolderLock) -> bool:
        """The marker goes first: from then on what is left is no build."""
        place.marker.unlink(missing_ok=True)
        removed = self._remove_tree(place)
        if removed:
            place.log.unlink(missing_ok=True)
            place.partial.unlink(missing_ok=True)
        lock.release(remove=removed)
        return removed

    def _remove_tree(self, place: _BuildFolder) -> bool:
        """Remove it. A failure must cost neither the results nor the error that is on its way."""
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


def new_name() -> str:
    """Return a name that no other worktree has; all have one length, and so have the paths.

    A path's length moves a process's stack, which can change what is measured.
    """
    return PREFIX + secrets.token_hex(8)


def add_tree(
    repository: Repository,
    path: Path,
    commit: str,
    tree: str,
    submodules: Sequence[Submodule] = (),
) -> None:
    """Check ``tree`` out at ``path`` as a worktree of ``commit``, which no branch follows.

    The tree is the commit's own, or has other benchmark files. The
    ``submodules`` are checked out in it.
    OutsideError where that fails; ``remove_tree`` then removes what there is.
    """
    # In two steps, so that nothing is locked in the repository while files are written.
    _register(repository, path, commit)
    filling = ("read-tree", "--reset", "-u", tree)
    filled = attempt(path, *filling)
    if filled.status != 0:
        with explaining(f"checking out at {path}"):
            # git names a file that it can't write, but gives no reason.
            (path / f"{PREFIX}probe").write_bytes(bytes(_PROBE_BYTES))
        raise failure(filled, *filling)
    check_out_submodules(submodules, path)


def _register(repository: Repository, path: Path, commit: str) -> None:
    """Try again where it fails: a git that runs beside this one can take a folder from under it.

    ``git worktree prune`` removes the folder of all registrations while it is empty, for instance.
    """
    arguments = ("worktree", "add", "--quiet", "--detach", "--no-checkout", str(path), commit)
    for _ in range(_TRIES - 1):
        if attempt(repository.root, *arguments).status == 0:
            return
    git(repository.root, *arguments)


def remove_tree(repository: Repository, path: Path) -> None:
    """Remove the worktree at ``path``, whole or half made, and its registration.

    Only ever by its own path: ``git worktree prune`` would take the user's worktrees on a disk
    that is not mounted at the moment. And by hand: ``git worktree remove`` does not know one
    whose making was cut short. OutsideError where it can't be removed.
    """
    registration = repository.common_dir / "worktrees" / path.name
    # The folder `worktrees` stays, even empty: another git may be about to write into it.
    with explaining(f"removing {path}"):
        for folder in (path, registration):
            if folder.exists():
                remove_folder(folder)
