"""Other sessions of this user on this machine: each has cores of its own, as far as there are.

Two sessions that pin their workers to one core take turns on it, and disturb each other's times.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from perfci.checkout.lock import take_if_free
from perfci.machine.quiet import CorePlan

SHARED = (
    "Another perfci session is measuring on this machine, on the same cores: both are disturbed."
)


@contextmanager
def own_cores(
    available: Sequence[int], plan: Callable[[Sequence[int]], CorePlan]
) -> Iterator[tuple[CorePlan, tuple[str, ...]]]:
    """Yield ``plan`` of the available cores, and a note where workers share theirs.

    ``plan`` takes workers' cores from the end: those that no other session holds stand there.
    """
    folder = _folder()
    if folder is None:
        yield plan(available), ()
        return
    free = {core for core in available if _is_free(folder / f"core-{core}.lock")}
    chosen = plan(sorted(available, key=lambda core: (core in free, core)))
    unshared = tuple(core for core in chosen.parent if core in free)
    chosen = replace(chosen, parent=unshared or chosen.parent)
    with ExitStack() as held:
        shared = False
        for core in chosen.workers:
            lock = take_if_free(folder / f"core-{core}.lock")
            if lock:
                held.enter_context(lock)
            shared = shared or lock is None
        yield chosen, (SHARED,) if shared else ()


def _is_free(path: Path) -> bool:
    lock = take_if_free(path)
    if lock:
        lock.release()
    return lock is not None


def _folder() -> Path | None:
    """Return the folder of the locks; None where it isn't this user's alone, or not for locks."""
    folder = Path(tempfile.gettempdir()) / f"perfci-cores-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:  # no room, or read-only: sessions then know nothing of each other
        return None
    mine = found.st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink()
    return folder if mine and not any(one.is_dir() for one in folder.iterdir()) else None
