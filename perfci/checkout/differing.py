"""Which files differ between two worktrees as they lie on the disk, builds included."""

from __future__ import annotations

import filecmp
from collections.abc import Iterator
from glob import escape
from pathlib import Path

from perfci.checkout.command import git

MOST = 5_000
"""Of more files than these nobody asks whether they were used: a change so large is measured."""

_UNWATCHABLE = frozenset({"120000", "160000"})
"""git's modes of a symbolic link, which is followed without being opened, and of a submodule."""
_ATTRIBUTES = ".gitattributes"
_BYTECODE = "__pycache__"


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
