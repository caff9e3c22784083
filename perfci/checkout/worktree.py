"""Temporary minimal worktrees (replaced)."""
from __future__ import annotations
import contextlib, shutil, secrets
from pathlib import Path
from perfci.checkout.command import git
class Worktrees:
    notes: tuple[str, ...] = ()
    def __init__(self, cache, repository):
        self.cache, self.repository = cache, repository
    def sweep(self): pass
    @contextlib.contextmanager
    def side(self, resolved, *, build=(), python="", environment=None, timeout=0.0):
        path = Path(self.cache) / self.repository.id / secrets.token_hex(4)
        path.parent.mkdir(parents=True, exist_ok=True)
        git(self.repository.root, "worktree", "add", "--detach", str(path), resolved.commit)
        try:
            yield path
        finally:
            git(self.repository.root, "worktree", "remove", "--force", str(path))
