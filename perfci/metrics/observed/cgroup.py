"""Memory that the kernel charges to a worker's own cgroup: each page, however shortly held.

Standard library only. Linux only: cgroup v2, where perfci found one to divide (``machine.cgroup``).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Self

ROOT = Path("/sys/fs/cgroup")
PREFIX = "perfci-"
PROCESSES, PEAK = "cgroup.procs", "memory.peak"
OWN = "0"
"""Stands for the process that writes it."""
_PROC = Path("/proc/self/cgroup")
_OF_A_SESSION = re.compile(rf"{PREFIX}[0-9a-f]{{16}}")


def own_cgroup() -> Path | None:
    """Return the folder of this process's cgroup; None where there is no cgroup v2."""
    try:
        lines = _PROC.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    return None if path is None else ROOT / path.lstrip("/")


def cgroup_of(token: str) -> Path | None:
    """Return the folder of the worker that has ``token``; None where its session divides nothing.

    It lies beside the session's own, which this process, its parent or the worker itself, is in.
    """
    here = own_cgroup()
    if here is None or not _OF_A_SESSION.fullmatch(here.name):
        return None
    return here.with_name(f"{here.name}-{token}")


class Charged:
    """The most memory that calls have charged to a cgroup which a worker has entered, over set-up.

    Unlike the tree's memory, with the page cache that is made in it and the kernel's own. A call
    is counted inside of ``with``. ``lost`` is why nothing is known: whoever delegated the cgroup
    may have taken it back.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._peak: int | None = None
        self._after_setup = 0
        self._most = 0
        self.lost = ""

    @classmethod
    def entered(cls, token: str) -> Self | None:
        """Move this process, and all that it will start, into a cgroup of its own, if it can."""
        folder = cgroup_of(token) if token else None
        if folder is None:
            return None
        try:
            folder.mkdir()
            if not (folder / PEAK).exists():  # before Linux 5.19, or the kernel refused it
                folder.rmdir()
                return None
            (folder / PROCESSES).write_text(OWN, encoding="ascii")
        except OSError:  # the session is ending: it divides nothing any more
            return None
        return cls(folder)

    def note_setup(self) -> None:
        """Remember what is charged now: set-up is done and nothing was called yet."""
        with self._while_there():
            current = (self._folder / "memory.current").read_text(encoding="ascii")
            self._after_setup = int(current)

    def __enter__(self) -> Self:
        """Reset the peak for this reader: a cgroup is divided only where the kernel can."""
        with self._while_there():
            if self._peak is None:
                self._peak = os.open(self._folder / PEAK, os.O_RDWR | os.O_CLOEXEC)
            os.write(self._peak, b"reset\n")
        return self

    def __exit__(self, *_: object) -> None:
        """Keep the peak."""
        with self._while_there():
            if self._peak is not None:
                self._most = max(self._most, int(os.pread(self._peak, 32, 0)))

    def over_setup(self) -> int:
        """Return the highest peak − what was charged after set-up, in bytes."""
        return self._most - self._after_setup

    @contextlib.contextmanager
    def _while_there(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.lost = f"its cgroup can't be read any more: {error.strerror}"
