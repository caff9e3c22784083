"""One commit, one runner: who has a commit in the works in this environment."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfci.checkout.disk import explaining
from perfci.checkout.lock import take_if_free
from perfci.store.history.history import History


@contextmanager
def claimed(history: History, cache: Path, environment: str, sha: str) -> Iterator[bool]:
    """Yield whether nobody else has the commit in the works; then it is ours until the end.

    Against others on this machine by a lock file in ``cache``; against other machines by the
    history's own claim. Both are let go of by the system when the holder dies, however it dies.
    """
    digest = hashlib.sha256(f"{history.shown}\0{environment}\0{sha}".encode()).hexdigest()
    folder = cache / "claims"
    with explaining(f"claiming a commit in {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        lock = take_if_free(folder / f"{digest[:24]}.lock")
    if lock is None:
        yield False
        return
    try:
        with history.claim(environment, sha) as mine:
            yield mine
    finally:
        lock.release(remove=True)
