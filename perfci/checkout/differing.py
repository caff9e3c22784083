"""Which files differ between two worktrees as they lie on the disk, builds included."""

from __future__ import annotations

import filecmp
from collections.abc import Collection, Iterator
from glob import escape
from pathlib import Path

from perfci.checkout.command import attempt, git
from perfci.checkout.submodules import MODE, checked_out_in

MOST = 5_000
"""Of more files than these nobody asks whether they were used: a change so large is measured."""

_UNWATCHABLE = frozenset({"120000", MODE})
"""git's modes of a symbolic link, which is followed without being opened, and of a submodule."""
_ATTRIBUTES = ".gitattributes"
_BYTECODE = "__pycache__"


def differing_files(one: Path, other: Path, trees: tuple[str, str]) -> frozenset[str] | None:
    """Return the paths, relative to both roots, of the files that differ or are in one root only.

    ``trees`` are git's hashes of what was checked out. ``.git`` is among them: it names the commit.
    Submodules that are checked out in both are looked into. None where a link, another submodule or
    ``.gitattributes`` (what git makes of a file as it checks it out) differs, and where there are
    more than ``MOST``. Bytecode that Python makes of a source counts as its source. OutsideError
    where git fails.
    """
    changed = _differing(one, other, trees)
    return frozenset(changed) if changed is not None and len(changed) <= MOST else None


def _differing(one: Path, other: Path, trees: tuple[str, str]) -> set[str] | None:
    submodules = {*checked_out_in(one)} & {*checked_out_in(other)}
    changed = _changed(one, trees, submodules)
    if changed is None:
        return None
    for name in (_not_as_committed(one) | _not_as_committed(other)) - submodules:
        pair = (one / name, other / name)
        if any(path.is_symlink() or path.is_dir() for path in pair):
            return None  # or another repository in this one
        if not all(path.is_file() for path in pair) or not filecmp.cmp(*pair, shallow=False):
            changed.add(name)
    for name in submodules:
        inner_one, inner_other = one / name, other / name
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
    told = git(root, "ls-files", "--modified", "--deleted", "--others", "-z")
    return {name for name in told.split("\0") if name and not _is_bytecode(name)}


def _is_bytecode(name: str) -> bool:
    return _BYTECODE in Path(name).parts


def bytecode_of(source: Path) -> Iterator[Path]:
    """Yield the files of bytecode that Python has made of ``source``, and reads in its place."""
    if source.suffix == ".py":
        yield from (source.parent / _BYTECODE).glob(f"{escape(source.stem)}.*.pyc")
