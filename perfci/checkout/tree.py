"""One git worktree of ours: made, filled, and removed again with git's registration of it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from perfci.checkout.command import attempt, failure, git
from perfci.checkout.disk import explaining, remove_folder
from perfci.checkout.repository import Repository
from perfci.checkout.submodules import Submodule, check_out_submodules

PREFIX = "perfci-"
"""Begins the last part of each path, after which git names the registration."""

_PROBE_BYTES = 1 << 20
_TRIES = 3


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
